"""The tables and the figure of the reverse copy task."""

from __future__ import annotations

import math
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from experiments.kit.drawing import distinct, save, table, with_deviation
from experiments.reverse_copy.published import WIDTHS

Row = dict[str, Any]
# What a row must have to be reported.
NEEDS = ("name", "cell", "length")
_NAMES = {"lstm": "LSTM", "mogrifier": "Mogrifier", "rlstm": "RLSTM"}
_COLOURS = {"lstm": "#4c4c4c", "mogrifier": "#0072b2", "rlstm": "#009e73"}


def report(rows: Sequence[Row], folder: pathlib.Path) -> str:
    """Draws cross-entropy against length (Figure 2.4), returns the tables."""
    folder.mkdir(parents=True, exist_ok=True)
    draw(rows, folder / "reverse_copy.png")
    parts = list(tables(rows).values())
    diverged = [row["name"] for row in rows if "diverged" in row]
    if diverged:
        parts.append(f"Diverged: {', '.join(diverged)}.")
    return "\n\n".join(parts)


def tables(rows: Sequence[Row]) -> dict[str, str]:
    """Returns the tables of the runs that did not diverge, by name."""
    rows = _finished(rows)
    return {
        "best": best_rates(rows),
        "rates": all_rates(rows),
        "widths": widths(rows),
        "cost": cost(rows),
    }


def draw(rows: Sequence[Row], path: pathlib.Path) -> None:
    """Draws the cross-entropy of the best rate against the length."""
    points: dict[str, list[tuple[int, float]]] = {}
    for best in map(best_rate, _by_cell_and_length(_finished(rows))):
        mean = float(np.mean(_losses(best)))
        points.setdefault(best[0]["cell"], []).append((best[0]["length"], mean))
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    for cell, line in points.items():
        axes.plot(*zip(*line, strict=True), "o-", color=_COLOURS[cell], label=cell)
    axes.set(xlabel="length", ylabel="test cross-entropy, nats a token")
    axes.set_ylim(bottom=0)
    save(figure, path)


def best_rates(rows: Sequence[Row]) -> str:
    """Returns the table of every cell and length at its best learning rate."""
    titles = (
        "cell",
        "length",
        "test cross-entropy, nats a token",
        "of uniform guesses",
        "whole sequences right",
        "learning rate",
        "seeds",
    )
    lines = [
        (
            _NAMES[best[0]["cell"]],
            best[0]["length"],
            with_deviation(_losses(best), 3),
            f"{_of_guesses(best[0]):.3f}",
            f"{np.mean([row['whole_sequences_right'] for row in best]):.1%}",
            f"{best[0]['learning_rate']:g}",
            len(best),
        )
        for best in map(best_rate, _by_cell_and_length(rows))
    ]
    return table(titles, lines)


def all_rates(rows: Sequence[Row]) -> str:
    """Returns the table of the test cross-entropies at all learning rates."""
    rates = sorted({row["learning_rate"] for row in rows})
    lines = []
    for runs in _by_cell_and_length(rows):
        at = [[run for run in runs if run["learning_rate"] == rate] for rate in rates]
        means = [with_deviation(_losses(group), 3) if group else "" for group in at]
        lines.append((_NAMES[runs[0]["cell"]], runs[0]["length"], *means))
    return table(("cell", "length", *[f"at {rate:g}" for rate in rates]), lines)


def widths(rows: Sequence[Row]) -> str:
    """Returns the table of parameters and widths, beside those of the thesis."""
    lengths = sorted({length for widths in WIDTHS.values() for length in widths})
    lines = []
    for cell in distinct(row["cell"] for row in rows):
        of_cell = [row for row in rows if row["cell"] == cell]
        here = distinct(f"{row['embedding_width']}/{row['width']}" for row in of_cell)
        parameters = distinct(f"{row['parameters']:,}" for row in of_cell)
        thesis = [WIDTHS.get(cell, {}).get(length, "") for length in lengths]
        lines.append((_NAMES[cell], "; ".join(parameters), "; ".join(here), *thesis))
    of_thesis = [f"thesis, length {length}" for length in lengths]
    return table(("cell", "parameters", "widths", *of_thesis), lines)


def cost(rows: Sequence[Row]) -> str:
    """Returns the table of the times of the runs."""
    lines = [
        (
            _NAMES[runs[0]["cell"]],
            runs[0]["length"],
            " / ".join(f"{run['step_ms']:.0f}" for run in runs),
            " / ".join(f"{run['seconds']:.0f}" for run in runs),
        )
        for runs in _by_cell_and_length(rows)
    ]
    minutes = sum(row["seconds"] for row in rows) / 60
    titles = ("cell", "length", "ms a step", "seconds a run")
    return table(titles, [*lines, ("all", "", "", f"{minutes:.0f} minutes")])


def best_rate(rows: Sequence[Row]) -> list[Row]:
    """Returns the runs of the learning rate with the lowest mean validation loss."""
    by_rate: dict[float, list[Row]] = {}
    for row in rows:
        by_rate.setdefault(row["learning_rate"], []).append(row)
    if not by_rate:
        return []
    return min(
        by_rate.values(),
        key=lambda group: float(
            np.mean([row["nats_per_token"]["valid"] for row in group])
        ),
    )


def _by_cell_and_length(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Gives the runs of every cell and length, those that there are."""
    for cell in distinct(row["cell"] for row in rows):
        of_cell = [row for row in rows if row["cell"] == cell]
        for length in sorted({row["length"] for row in of_cell}):
            yield [row for row in of_cell if row["length"] == length]


def _finished(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if "diverged" not in row]


def _losses(rows: Sequence[Row]) -> list[float]:
    return [row["nats_per_token"]["test"] for row in rows]


def _of_guesses(row: Row) -> float:
    """Returns the loss of who knows the length alone: `<eos>` costs nothing."""
    length = row["length"]
    return length / (length + 1) * math.log(row["settings"]["num_tokens"])
