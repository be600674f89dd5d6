"""The figures of the report."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from rlm_tf.commands.report.contents import Forecast
from rlm_tf.evaluation.reliability import Reliability

_SIZE = (6.0, 3.6)
_BLUE, _GREY, _ORANGE = "#1f5fa8", "#777777", "#d1760a"


@contextmanager
def drawn(written: io.BytesIO) -> Iterator[Axes]:
    """Gives axes to draw on; writes them as a PNG in the end."""
    figure, axes = plt.subplots(figsize=_SIZE, layout="constrained")
    axes.spines[["top", "right"]].set_visible(False)
    yield axes
    figure.savefig(written, format="png", dpi=120)
    plt.close(figure)


def curve(curves: Sequence[list[dict[str, Any]]], steps: int, n_gram: float) -> bytes:
    """Draws validation perplexity while training, beside the n-gram's.

    Args:
        curves: Of each model, the evaluations of its averages.
        steps: Of an epoch.
        n_gram: The n-gram's perplexity.

    Returns:
        A PNG.
    """
    written = io.BytesIO()
    with drawn(written) as axes:
        for name, label, colour in (
            ("raw_loss", "weights themselves", _GREY),
            ("loss", "averaged weights", _BLUE),
        ):
            for number, evaluations in enumerate(curves):
                axes.plot(
                    [row["step"] / steps for row in evaluations],
                    [
                        math.exp(min(row.get(name, row["loss"]), 20))
                        for row in evaluations
                    ],
                    label=None if number else label,
                    color=colour,
                    marker=".",
                    lw=1.2,
                )
        axes.axhline(n_gram, color=_ORANGE, ls="--", label="n-gram")
        axes.set_yscale("log")
        lowest = min(math.exp(row["loss"]) for rows in curves for row in rows)
        axes.set_ylim(min(lowest, n_gram) / 1.1, 3 * max(lowest, n_gram))
        axes.set(xlabel="epoch", ylabel="validation perplexity")
        axes.yaxis.set_major_formatter(matplotlib.ticker.ScalarFormatter())
        axes.yaxis.set_minor_formatter(matplotlib.ticker.ScalarFormatter())
        axes.tick_params(axis="y", which="minor", labelsize=7)
        axes.legend(frameon=False)
    return written.getvalue()


def calibration(found: Reliability) -> bytes:
    """Draws accuracy against confidence; returns a PNG."""
    written = io.BytesIO()
    with drawn(written) as axes:
        axes.plot([0, 1], [0, 1], color=_GREY, ls="--", lw=1, label="as sure as right")
        axes.plot(found.confidence, found.accuracy, color=_BLUE, marker="o")
        for x, y, count in zip(
            found.confidence, found.accuracy, found.counts, strict=True
        ):
            axes.annotate(
                f"{count:,}",
                (x, y),
                textcoords="offset points",
                xytext=(4, -11),
                fontsize=7,
                color=_GREY,
            )
        axes.set(
            xlabel="probability of the most probable token",
            ylabel="share that was right",
        )
        axes.legend(frameon=False)
    return written.getvalue()


def more_text(found: Forecast) -> bytes:
    """Draws what more text would bring the n-gram; returns a PNG."""
    written = io.BytesIO()
    pairs = list(zip(found.tokens, found.bits_per_byte, found.measured, strict=True))
    with drawn(written) as axes:
        seen = [(x, y) for x, y, measured in pairs if measured]
        ahead = [seen[-1], *((x, y) for x, y, measured in pairs if not measured)]
        axes.plot(*zip(*seen, strict=True), color=_ORANGE, marker="o", label="measured")
        axes.plot(
            *zip(*ahead, strict=True),
            color=_ORANGE,
            ls=":",
            marker=".",
            label="forecast",
        )
        axes.set_xscale("log")
        axes.set(xlabel="tokens counted", ylabel="n-gram, test bits per byte")
        axes.legend(frameon=False)
    return written.getvalue()
