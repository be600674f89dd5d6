"""The tables and the figure of the variances."""

from __future__ import annotations

import math
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
_TITLES = {"raw": "as they are", "scaled": "expected gradients of one norm"}


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
            found = [each for row in rows if (each := ratio_of(row, name, kind))]
            cells = ("", "", "")
            if found:
                cells = (
                    _with_range([each["mean"] for each in found]),
                    _with_range([each["median"] for each in found]),
                    with_deviation([100 * e["share_above_one"] for e in found], 1)
                    + " %",
                )
            lines.append((name, title, len(found), *cells))
    titles = (
        "IW-RAML",
        "compared",
        "models",
        "mean ratio",
        "median",
        "parameters above 1",
    )
    return table(titles, lines, (0, 1))


def ratio_of(row: Row, name: str, kind: str) -> Row | None:
    """Returns mean, median and histogram of the ratios of a row.

    Args:
        row: The row.
        name: Of the estimator that RL is compared to.
        kind: "raw", or "scaled": what the ratios would be with gradients of one signal,
            that is with all multiplied by the square of the signals' ratio.

    Returns:
        With `edges` of the histogram's bins; None where nothing can be said: RL's
        signal was not told from 0.
    """
    raw = row["ratios"][name]["raw"]
    if raw is None:
        return None
    factor, edges = 1.0, np.array(row["edges"])
    if kind == "scaled":
        of_rl = row["estimators"]["rl"]["signal"]
        if not of_rl:
            return None
        factor = (row["estimators"][name]["signal"] / of_rl) ** 2
    edges = edges + math.log10(factor)
    counts = np.array(raw["histogram"])
    # Of the bin that 1 falls into the part above it.
    above = np.clip(edges[1:] / np.diff(edges), 0, 1)
    return {
        "mean": factor * raw["mean"],
        "median": factor * raw["median"],
        "share_above_one": float((counts * above).sum() / counts.sum()),
        "histogram": counts,
        "edges": edges,
    }


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
    """Draws histograms of log10 ratios (Figure 3), a line a model."""
    figure, panels = plt.subplots(
        1, 2, figsize=(9, 3.6), layout="constrained", sharey=True
    )
    names = distinct(name for row in rows for name in row["ratios"])
    for axes, (kind, title) in zip(panels, _TITLES.items(), strict=True):
        for number, name in enumerate(names):
            for row in rows:
                found = ratio_of(row, name, kind)
                if found is None:
                    continue
                edges = found["edges"]
                axes.step(
                    (edges[1:] + edges[:-1]) / 2,
                    found["histogram"] / row["ratios"][name]["compared"],
                    where="mid",
                    color=f"C{number}",
                    linewidth=1,
                    label=name if row is rows[0] else None,
                )
        axes.axvline(0, color="black", linewidth=1)
        axes.set(title=title, xlabel="log10 of variance of RL over that of IW-RAML")
    panels[0].set(ylabel="share of the parameters")
    panels[0].legend(frameon=False, fontsize="small")
    save(figure, path)
