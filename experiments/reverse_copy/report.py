"""The table and the figure of the reverse copy task."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from experiments.kit.drawing import distinct, save, table, with_deviation

Row = dict[str, Any]
# What a row must have to be reported.
NEEDS = ("name", "cell", "length")
_COLOURS = {"lstm": "#4c4c4c", "mogrifier": "#0072b2", "rlstm": "#009e73"}


def report(rows: Sequence[Row], folder: pathlib.Path) -> str:
    """Draws cross-entropy against length (Figure 2.4), returns the table."""
    folder.mkdir(parents=True, exist_ok=True)
    diverged = [row["name"] for row in rows if "diverged" in row]
    rows = [row for row in rows if "diverged" not in row]
    cells = distinct(row["cell"] for row in rows)
    lengths = sorted({row["length"] for row in rows})
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    lines = []
    for cell in cells:
        points = []
        for length in lengths:
            best = best_rate(
                [r for r in rows if (r["cell"], r["length"]) == (cell, length)]
            )
            if not best:
                continue
            values = [row["nats_per_token"]["test"] for row in best]
            points.append((length, float(np.mean(values))))
            row = best[0]
            lines.append(
                [
                    cell,
                    length,
                    with_deviation(values, 3),
                    f"{np.mean([r['whole_sequences_right'] for r in best]):.1%}",
                    f"{row['learning_rate']:g}",
                    f"{row['embedding_width']}/{row['width']}",
                    f"{row['parameters']:,}",
                    len(values),
                ]
            )
        axes.plot(*zip(*points, strict=True), "o-", color=_COLOURS[cell], label=cell)
    axes.set(xlabel="length", ylabel="test cross-entropy, nats a token")
    axes.set_ylim(bottom=0)
    save(figure, folder / "reverse_copy.png")
    titles = [
        "cell",
        "length",
        "nats a token",
        "whole sequences right",
        "learning rate",
        "widths E/H",
        "parameters",
        "seeds",
    ]
    text = table(titles, lines)
    return f"{text}\n\nDiverged: {', '.join(diverged)}." if diverged else text


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
