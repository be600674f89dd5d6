"""Tables and plots that several reports share."""

from __future__ import annotations

import pathlib
from collections.abc import Iterable, Sequence
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def table(
    titles: Sequence[str], rows: Sequence[Sequence[Any]], left: Sequence[int] = (0,)
) -> str:
    """Returns a Markdown table; columns are right-aligned but those of `left`."""
    rule = ["---" if index in left else "---:" for index in range(len(titles))]
    return "\n".join(
        f"| {' | '.join(map(str, line))} |" for line in (titles, rule, *rows)
    )


def distinct(values: Iterable[Any]) -> list[Any]:
    """Returns values without repetitions, in the order of their first places."""
    return list(dict.fromkeys(values))


def spread(values: Sequence[float], digits: int = 2) -> str:
    """Returns `mean [10th percentile, 90th percentile]` of runs."""
    low, high = np.percentile(values, [10, 90])
    return f"{np.mean(values):.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def with_deviation(values: Sequence[float], digits: int = 2) -> str:
    """Returns `mean ± standard deviation` of seeds, the one value there is, or ''."""
    if not values:
        return ""
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    return f"{np.mean(values):.{digits}f} ± {np.std(values, ddof=1):.{digits}f}"


def percentile_bars(
    axes: Any,
    x: Sequence[float],
    values: Sequence[Sequence[float]],
    colour: str,
    label: str,
    **options: Any,
) -> None:
    """Draws means with bars from the 10th to the 90th percentile.

    Args:
        axes: Where to draw.
        x: One number for each point.
        values: The runs of each point.
        colour: Of line and bars.
        label: In the legend.
        **options: Of `errorbar`.
    """
    means = np.array([np.mean(each) for each in values])
    low, high = np.transpose([np.percentile(each, [10, 90]) for each in values])
    # A mean may lie beyond a percentile.
    bars = [np.maximum(means - low, 0), np.maximum(high - means, 0)]
    options = {"capsize": 2, "elinewidth": 0.7, "lw": 1.3, **options}
    axes.errorbar(x, means, bars, color=colour, label=label, **options)


def shared_legend(axes: Any, panels: Iterable[Any]) -> None:
    """Makes of an empty cell of a grid the one legend of its panels."""
    handles: dict[str, Any] = {}
    for panel in panels:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
        # So that `save` makes none.
        panel.legend([], [], frameon=False)
    axes.set_axis_off()
    axes.legend(handles.values(), handles, fontsize=11, loc="center", frameon=False)


def save(figure: Any, path: pathlib.Path, *, shares_legend: bool = False) -> None:
    """Writes a figure, with grids and, where there are labels, legends.

    Args:
        figure: The figure.
        path: A PNG.
        shares_legend: Whether one legend, that of the first panel, is below all panels;
            their layout must be constrained.
    """
    if shares_legend:
        known = figure.axes[0].get_legend_handles_labels()
        figure.legend(*known, loc="outside lower center", ncols=4, fontsize=8)
    for axes in figure.axes:
        if axes.get_images() or axes.get_label() == "<colorbar>":
            continue
        axes.grid(alpha=0.3)
        is_told = shares_legend or axes.get_legend() is not None
        if axes.get_legend_handles_labels()[0] and not is_told:
            axes.legend(fontsize=8)
    figure.savefig(path, dpi=120)
    plt.close(figure)
