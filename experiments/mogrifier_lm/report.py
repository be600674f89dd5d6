"""Tables and figures of `experiments.mogrifier_lm`."""

from __future__ import annotations

import math
import pathlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from experiments.kit.drawing import save, table, with_deviation

Row = dict[str, Any]
Column = Callable[[Sequence[Row]], Any]
# What a row must have to be reported.
NEEDS = (
    "name",
    "config.seed",
    "corpus.name",
    "perplexity.valid",
    "perplexity.test",
    "raw_valid_perplexity",
    "width",
    "parameters",
    "seconds",
    "recoveries",
    "curve",
    "step_ms",
)
_LABELS = {
    "lstm": "LSTM",
    "mogrifier": "Mogrifier",
    "rlstm": "RLSTM",
    "plain-lstm": "plain LSTM",
}
# More are not told apart by their colours.
_MOST_CURVES = 10
_CHARACTERS = ("ptb-char", "enwik8", "text8", "mwc-en", "mwc-fi", "tiny-shakespeare")


def name_of(row: Row) -> str:
    """Returns the name of a row without its seed."""
    return re.sub(r"-seed\d+$", "", row["name"])


def label(name: str) -> str:
    """Returns what tables call a group."""
    return _LABELS.get(name, name)


def grouped(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Returns the rows of each name without its seed, in the order of first rows."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(name_of(row), []).append(row)
    return groups


def result_columns(rows: Sequence[Row]) -> dict[str, Column]:
    """Returns what a table says of a group of seeds, by title.

    Args:
        rows: All that the table is of; they decide on the unit.
    """
    unit = unit_of(rows)
    return {
        f"valid {unit}": lambda group: with_spread(_of(group, "valid"), unit),
        f"test {unit}": lambda group: with_spread(_of(group, "test"), unit),
        "last iterate, valid": lambda group: with_spread(
            [row["raw_valid_perplexity"] for row in group], unit
        ),
        "width": lambda group: group[0]["width"],
        "parameters": lambda group: f"{group[0]['parameters']:,}",
    }


def lines_of(
    groups: Mapping[str, Sequence[Row]], columns: Mapping[str, Column]
) -> list[list[Any]]:
    """Returns a line a group: its name and its columns."""
    return [
        [name, *(column(group) for column in columns.values())]
        for name, group in groups.items()
    ]


def results_table(rows: Sequence[Row]) -> str:
    """Returns a Markdown table: one line a group, mean and spread over seeds."""
    columns: dict[str, Column] = {
        "seeds": len,
        **result_columns(rows),
        "ms/step": _median_step,
        "minutes": lambda group: f"{np.mean([r['seconds'] for r in group]) / 60:.0f}",
        "recoveries": lambda group: sum(row["recoveries"] for row in group),
    }
    return table(["run", *columns], lines_of(grouped(rows), columns))


def _median_step(group: Sequence[Row]) -> str:
    """Returns the median time of a step, milliseconds."""
    steps = [row["step_ms"] for row in group if row["step_ms"]]
    return f"{np.median(steps):.0f}" if steps else "-"


def results_figure(rows: Sequence[Row], path: pathlib.Path) -> None:
    """Draws learning curves, or of many groups what they reach."""
    if len(grouped(rows)) > _MOST_CURVES:
        final_losses(rows, path)
    else:
        learning_curves(rows, path)


def final_losses(rows: Sequence[Row], path: pathlib.Path) -> None:
    """Draws perplexities, a line of dots for each group, one dot a seed."""
    groups = grouped(rows)
    size = (7, 1.2 + 0.3 * len(groups))
    figure, axes = plt.subplots(figsize=size, layout="constrained")
    for colour, split in (("#0072b2", "valid"), ("#d55e00", "test")):
        points = [
            (row["perplexity"][split], height)
            for height, group in enumerate(groups.values())
            for row in group
        ]
        axes.plot(*zip(*points, strict=True), "o", color=colour, label=split)
    axes.set_yticks(range(len(groups)), list(groups))
    axes.invert_yaxis()
    axes.set(xlabel="perplexity")
    save(figure, path)


def learning_curves(rows: Sequence[Row], path: pathlib.Path) -> None:
    """Draws validation loss against epochs, averaged and (thin) not averaged.

    Runs of unequal numbers of epochs, whose time was equal, are drawn against minutes
    of training. The losses begin where the best run has done two fifths of its epochs:
    before, all look the same.
    """
    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    lowest = highest = math.inf
    in_minutes = len({len(row["curve"]) for row in rows}) > 1
    for index, (name, group) in enumerate(grouped(rows).items()):
        colour = f"C{index}"
        for number, row in enumerate(group):
            unit = row["seconds"] / len(row["curve"]) / 60 if in_minutes else 1
            curve = [p for p in row["curve"] if p.get("averaged_loss") is not None]
            positions = [(point["epoch"] + 1) * unit for point in curve]
            losses = [point["averaged_loss"] for point in curve]
            if not losses:
                continue
            lowest = min(lowest, *losses)
            highest = min(highest, losses[2 * len(losses) // 5])
            label = name if number == 0 else None
            axes.plot(positions, losses, color=colour, label=label, lw=1.5)
            raw = [point.get("averaged_raw_loss") or math.nan for point in curve]
            axes.plot(positions, raw, color=colour, lw=0.5)
    for width, label in ((1.5, "averaged weights"), (0.5, "the run's own weights")):
        axes.plot([], [], color="black", lw=width, label=label)
    if math.isfinite(lowest):
        margin = 0.05 * (highest - lowest) + 0.01
        axes.set_ylim(lowest - margin, highest + margin)
    axes.set(
        xlabel="minutes" if in_minutes else "epoch",
        ylabel="validation loss, nats a token",
    )
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


def unit_of(rows: Sequence[Row]) -> str:
    """Returns bits, a character, where all rows are of characters."""
    names = {row["corpus"]["name"] for row in rows}
    return "bits" if names <= set(_CHARACTERS) else "perplexity"


def with_spread(perplexities: Sequence[float | None], unit: str) -> str:
    """Returns mean and spread of seeds, in a unit of `unit_of`."""
    # Of a last iterate that diverged there is none.
    known = [value for value in perplexities if value is not None]
    if not known:
        return "-"
    values = [math.log2(v) for v in known] if unit == "bits" else known
    return with_deviation(values, 3 if unit == "bits" else 2)


def _of(group: Sequence[Row], split: str) -> list[float]:
    return [row["perplexity"][split] for row in group]
