"""Tables and figures of `experiments.mogrifier_lm`."""

from __future__ import annotations

import math
import pathlib
import re
from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from experiments.drawing import save, table

Row = dict[str, Any]
_CHARACTERS = ("ptb-char", "enwik8", "text8", "mwc-en", "mwc-fi", "tiny-shakespeare")


def grouped(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Returns the rows of each name without its seed, in the order of first rows."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        name = re.sub(r"-seed\d+$", "", row["name"])
        groups.setdefault(name, []).append(row)
    return groups


def results_table(rows: Sequence[Row]) -> str:
    """Returns a Markdown table: one line a group, mean and spread over seeds."""
    unit = _unit(rows)
    titles = [
        "run",
        "seeds",
        f"valid {unit}",
        f"test {unit}",
        "last iterate, valid",
        "width",
        "parameters",
        "ms/step",
        "recoveries",
    ]
    lines = []
    for name, group in grouped(rows).items():
        steps = [row["step_ms"] for row in group if row["step_ms"]]
        lines.append(
            [
                name,
                len(group),
                _spread([row["perplexity"]["valid"] for row in group], unit),
                _spread([row["perplexity"]["test"] for row in group], unit),
                _spread([row["raw_valid_perplexity"] for row in group], unit),
                group[0]["width"],
                f"{group[0]['parameters']:,}",
                f"{np.median(steps):.0f}" if steps else "-",
                sum(row["recoveries"] for row in group),
            ]
        )
    return table(titles, lines)


def ways_table(rows: Sequence[Row]) -> str:
    """Returns how well every way of evaluating does, of rows that have them."""
    lines = []
    unit = _unit(rows)
    for row in rows:
        for way, values in (row.get("ways") or {}).get("perplexity", {}).items():
            numbers = [_spread([values[split]], unit) for split in ("valid", "test")]
            lines.append([row["name"], way, *numbers])
    titles = ["run", "evaluation", f"valid {unit}", f"test {unit}"]
    return table(titles, lines, left=(0, 1)) if lines else ""


def learning_curves(rows: Sequence[Row], path: pathlib.Path) -> None:
    """Draws validation loss against epochs, averaged and (thin) not averaged."""
    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    lowest = math.inf
    for index, (name, group) in enumerate(grouped(rows).items()):
        colour = f"C{index % 10}"
        for number, row in enumerate(group):
            curve = [point for point in row["curve"] if "averaged_loss" in point]
            epochs = [point["epoch"] + 1 for point in curve]
            losses = [point["averaged_loss"] for point in curve]
            if not losses:
                continue
            lowest = min(lowest, *losses)
            label = name if number == 0 else None
            axes.plot(epochs, losses, color=colour, label=label, lw=1.5)
            raw = [point.get("averaged_raw_loss", math.nan) for point in curve]
            axes.plot(epochs, raw, color=colour, lw=0.5)
    if math.isfinite(lowest):
        axes.set_ylim(lowest - 0.02, lowest + 0.8)
    axes.set(xlabel="epoch", ylabel="validation loss, nats a token")
    save(figure, path)


def rounds_figure(rows: Sequence[Row], path: pathlib.Path) -> None:
    """Draws perplexity against the Mogrifier's rounds (Figure 2.3); 0 is the LSTM.

    Args:
        rows: Of which those count that differ from the Mogrifier among them in nothing
            but seeds and rounds, and the LSTMs.
        path: Of the figure.
    """
    losses: dict[int, list[Row]] = {}
    mogrifier = next(row for row in rows if row["name"].startswith("mogrifier-seed"))
    for row in rows:
        config = row["config"]
        rounds = config["rounds"]
        same = {**mogrifier["config"], "seed": config["seed"], "rounds": rounds}
        if config == same or row["name"].startswith("lstm-seed"):
            losses.setdefault(rounds, []).append(row)
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    for colour, split in (("#0072b2", "valid"), ("#d55e00", "test")):
        found = {
            rounds: [row["perplexity"][split] for row in group]
            for rounds, group in sorted(losses.items())
        }
        means = [float(np.mean(values)) for values in found.values()]
        axes.plot(list(found), means, color=colour, label=split)
        for rounds, values in found.items():
            axes.plot([rounds] * len(values), values, "o", color=colour, ms=4)
    axes.set(xlabel="rounds", ylabel="perplexity")
    save(figure, path)


def _unit(rows: Sequence[Row]) -> str:
    """Returns bits, a character, where all rows are of characters."""
    names = {row["corpus"]["name"] for row in rows}
    return "bits" if names <= set(_CHARACTERS) else "perplexity"


def _spread(perplexities: Sequence[float], unit: str) -> str:
    values = [math.log2(v) for v in perplexities] if unit == "bits" else perplexities
    digits = 3 if unit == "bits" else 2
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    return f"{np.mean(values):.{digits}f} ± {np.std(values, ddof=1):.{digits}f}"
