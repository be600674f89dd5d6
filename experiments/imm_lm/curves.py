"""Figures of learning curves from rows of results."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.imm_lm.report import Row, grouped, number, without_part

# Two readable, colour-blind-safe hues an arm family; the rest fall back to the cycle.
_COLOURS = {
    "none": "#4c4c4c",
    "noising-bigram-kn": "#e69f00",
    "noising-bigram-kn-dropout-0.4": "#b8860b",
    "imm-in-batch": "#0072b2",
    "imm-in-batch-count1": "#56b4e9",
    "imm-in-batch-all": "#009e73",
    "imm-sampled": "#cc79a7",
    "interpolation": "#d55e00",
    "imm-sampled-k1-every1": "#f0a3b5",
    "imm-sampled-k10-every5": "#cc79a7",
    "imm-sampled-k10-every1": "#882255",
}


def learning_curves(rows: Sequence[Row], path: pathlib.Path, title: str) -> bool:
    """Writes a figure of validation perplexity against epochs.

    Interpolation is left out: it is not trained, its curve would be that of the model
    before it is mixed.

    Returns:
        Whether there was anything to draw.
    """
    rows = [row for row in rows if row["config"]["arm"] != "interpolation"]
    if not rows:
        return False
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7.2, 4.4), layout="constrained")
    draw_learning_curves(axes, rows)
    axes.set_title(title, fontsize=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
    return True


def draw_learning_curves(axes: Any, rows: Sequence[Row]) -> None:
    """Draws a line an arm, the mean over seeds, and a band of their range.

    Arms that never reached a finite perplexity are left out.
    """
    from matplotlib import ticker

    lowest, longest, starts = np.inf, 1, []
    for name, members in grouped(rows).items():
        # Reloading the best weights makes the best so far the model that is kept.
        curves = [
            np.fmin.accumulate([number(p["val_perplexity"]) for p in row["curve"]])
            for row in members
        ]
        length = min(len(curve) for curve in curves)
        longest = max(longest, length)
        stacked = np.array([curve[:length] for curve in curves])
        mean = stacked.mean(axis=0)
        if not np.isfinite(mean).any():
            continue
        epochs = np.arange(1, length + 1)
        colour = colour_of(name)
        label = f"{name}, {mean[-1]:.1f} in the end"
        (line,) = axes.plot(epochs, mean, label=label, color=colour, linewidth=1.8)
        if len(curves) > 1:
            low, high = stacked.min(axis=0), stacked.max(axis=0)
            axes.fill_between(
                epochs, low, high, color=line.get_color(), alpha=0.2, linewidth=0
            )
        lowest = min(lowest, np.nanmin(mean))
        # The best so far never rises: its first value is its largest.
        starts.append(np.nanmax(mean[length // 6 :]))
    if starts:
        axes.set_ylim(lowest * 0.97, max(starts) * 1.05)
    axes.set_xlim(0, 1.02 * longest)
    axes.xaxis.set_major_locator(ticker.MaxNLocator(integer=True))
    axes.set_xlabel("epoch")
    axes.set_ylabel("validation perplexity (best so far)")
    axes.grid(alpha=0.25)
    if starts:
        axes.legend(frameon=False, fontsize=8)


def colour_of(name: str) -> str | None:
    """Returns the colour of an arm in every figure, or None for the next free one."""
    return _COLOURS.get(without_part(name))
