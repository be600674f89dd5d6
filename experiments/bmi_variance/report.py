"""The tables and the figure of the variances."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from experiments.kit.drawing import distinct, save, table, with_deviation
from experiments.kit.paired import paired_difference

Row = Mapping[str, Any]
# What a row must have to be reported.
NEEDS = ("name", "seed", "estimators", "ratios", "edges", "batches")
_TITLES = {"raw": "as they are", "scaled": "mean gradients of one norm"}


def report(rows: Sequence[Row], folder: pathlib.Path) -> str:
    """Draws the histograms, and returns the tables."""
    if rows:
        draw(rows, folder / "bmi_variance.png")
    return "\n\n".join(tables(rows).values())


def tables(rows: Sequence[Row]) -> dict[str, str]:
    """Returns the tables, by name."""
    return {"ratios": ratios(rows), "estimators": estimators(rows)}


def ratios(rows: Sequence[Row]) -> str:
    """Returns the table of ratios of variances, RL over IW-RAML."""
    lines = []
    for name in distinct(name for row in rows for name in row["ratios"]):
        for kind, title in _TITLES.items():
            found = [row["ratios"][name][kind] for row in rows]
            found = [each for each in found if each is not None]
            cells = ("", "", "")
            if found:
                cells = (
                    _with_range([each["mean"] for each in found]),
                    _with_range([each["median"] for each in found]),
                    with_deviation([100 * e["share_above_one"] for e in found], 1)
                    + " %",
                )
            lines.append((name, title, *cells))
    titles = ("IW-RAML", "compared", "mean ratio", "median", "parameters above 1")
    return table(titles, lines, (0, 1))


def _with_range(values: Sequence[float]) -> str:
    """Returns the geometric mean of ratios of seeds, the least and the greatest."""
    if len(values) == 1:
        return f"{values[0]:.3g}"
    middle = float(np.exp(np.mean(np.log(values))))
    return f"{middle:.3g} ({min(values):.3g} to {max(values):.3g})"


def shares(rows: Sequence[Row], name: str) -> list[float]:
    """Returns an estimator's signal over its noise, by rows."""
    found = [row["estimators"][name] for row in rows]
    return [each["signal"] / each["noise"] for each in found if each["noise"]]


def estimators(rows: Sequence[Row]) -> str:
    """Returns the table of signal and noise of each estimator."""
    lines = []
    for name in distinct(name for row in rows for name in row["estimators"]):
        own = [row["estimators"][name] for row in rows]

        def of(read: Callable[[Row], float], own: Sequence[Row] = own) -> str:
            return f"{np.mean([read(each) for each in own]):.3g}"

        pairs = zip(shares(rows, name), shares(rows, "rl"), strict=True)
        lines.append(
            (
                name,
                of(lambda each: each["signal"]),
                of(lambda each: each["noise"]),
                with_deviation(shares(rows, name), 3),
                "" if name == "rl" else paired_difference([*pairs], 3),
                of(lambda each: 1000 * each["seconds"] / rows[0]["batches"]) + " ms",
            )
        )
    titles = (
        "estimator",
        "signal",
        "noise",
        "signal / noise",
        "less `rl`, ± 2 standard errors",
        "a batch",
    )
    return table(titles, lines)


def draw(rows: Sequence[Row], path: pathlib.Path) -> None:
    """Draws histograms of log10 ratios (Figure 3), means of seeds."""
    edges = np.array(rows[0]["edges"])
    middles = (edges[1:] + edges[:-1]) / 2
    figure, panels = plt.subplots(
        1, 2, figsize=(9, 3.6), layout="constrained", sharey=True
    )
    for axes, (kind, title) in zip(panels, _TITLES.items(), strict=True):
        for name in distinct(name for row in rows for name in row["ratios"]):
            found = [row["ratios"][name] for row in rows]
            counted = [
                np.array(each[kind]["histogram"]) / each["compared"]
                for each in found
                if each[kind] is not None
            ]
            if counted:
                axes.step(middles, np.mean(counted, 0), where="mid", label=name)
        axes.axvline(0, color="black", linewidth=1)
        axes.set(title=title, xlabel="log10 of variance of RL over that of IW-RAML")
    panels[0].set(ylabel="share of the parameters")
    panels[0].legend(frameon=False, fontsize="small")
    save(figure, path)
