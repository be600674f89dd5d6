"""The figures of the report of `rlm_tf seed_classify`."""

from __future__ import annotations

import io
import textwrap
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("Agg")

from rlm_tf.commands.report.figures import drawn

_BLUE, _GREY, _ORANGE = "#1f5fa8", "#999999", "#d1760a"
_MOST_CLASSES = 25


def balance(classes: list[dict[str, Any]], labelled: int, documents: int) -> bytes:
    """Draws the shares of classes, by seeds and predicted; returns a PNG."""
    shown = sorted(classes, key=lambda row: -row["predicted"])[:_MOST_CLASSES]
    places = np.arange(len(shown))
    written = io.BytesIO()
    with drawn(written) as axes:
        for shift, name, total, colour, label in (
            (-0.2, "by_seeds", labelled, _ORANGE, "of the labels by seeds"),
            (0.2, "predicted", documents, _BLUE, "of the predictions"),
        ):
            shares = [row[name] / max(total, 1) for row in shown]
            axes.barh(places + shift, shares, 0.38, color=colour, label=label)
        axes.set_yticks(places, [row["name"] for row in shown])
        axes.invert_yaxis()
        axes.set(xlabel="share")
        axes.legend(frameon=False, ncols=2, loc="lower left", bbox_to_anchor=(0.0, 1.0))
    return written.getvalue()


def confidence(sure: np.ndarray) -> bytes:
    """Draws how sure predictions are; returns a PNG."""
    written = io.BytesIO()
    with drawn(written) as axes:
        axes.hist(sure, bins=20, range=(0, 1), color=_BLUE)
        axes.set(xlabel="probability of the predicted class", ylabel="documents")
    return written.getvalue()


def estimates(rows: list[tuple[str, float, float, float]]) -> bytes:
    """Draws estimates and their intervals; returns a PNG.

    Args:
        rows: (what, value, low, high), low and high the value where none is known.
    """
    written = io.BytesIO()
    with drawn(written) as axes:
        for place, (_, value, low, high) in enumerate(rows):
            is_sure = low < high
            colour = _BLUE if is_sure else _GREY
            axes.plot([low, high], [place, place], color=colour, lw=2)
            axes.plot([value], [place], "o", color=colour)
        names = [textwrap.fill(name, 30) for name, *_ in rows]
        axes.set_yticks(range(len(rows)), names)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set(xlabel="share that is right", xlim=(0, 1.02))
    return written.getvalue()
