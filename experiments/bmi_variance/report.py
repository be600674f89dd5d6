"""The table and the figure of the variances."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from experiments.kit.drawing import save, table

Numbers = Mapping[str, Any]
_TITLES = {"raw": "as they are", "scaled": "mean gradients of one norm"}


def report(parts: Mapping[str, Numbers], folder: pathlib.Path) -> str:
    """Draws the histograms, and returns the tables."""
    if "variance" in parts:
        draw(parts["variance"], folder / "bmi_variance.png")
    return "\n\n".join(tables(parts).values()) + "\n"


def tables(parts: Mapping[str, Numbers]) -> dict[str, str]:
    """Returns the tables, by name."""
    if "variance" not in parts:
        return {}
    numbers = parts["variance"]
    return {"ratios": ratios(numbers), "estimators": estimators(numbers)}


def ratios(numbers: Numbers) -> str:
    """Returns the table of ratios of variances, RL over IW-RAML."""
    lines = []
    for name, row in numbers["ratios"].items():
        for kind, title in _TITLES.items():
            found = row[kind]
            cells = ("", "", "")
            if found is not None:
                cells = (
                    f"{found['mean']:.3g}",
                    f"{found['median']:.3g}",
                    f"{100 * found['share_above_one']:.1f} %",
                )
            lines.append((name, title, *cells))
    titles = ("IW-RAML", "compared", "mean ratio", "median", "parameters above 1")
    return table(titles, lines, (0, 1))


def estimators(numbers: Numbers) -> str:
    """Returns the table of signal and noise of each estimator."""
    lines = []
    for name, row in numbers["estimators"].items():
        share = row["signal"] / row["noise"] if row["noise"] else float("nan")
        lines.append(
            (
                name,
                f"{row['signal']:.3g}",
                f"{row['noise']:.3g}",
                f"{share:.3f}",
                f"{1000 * row['seconds'] / numbers['batches']:.0f} ms",
            )
        )
    return table(("estimator", "signal", "noise", "signal / noise", "a batch"), lines)


def draw(numbers: Numbers, path: pathlib.Path) -> None:
    """Draws histograms of log10 ratios (Figure 3)."""
    edges = np.array(numbers["edges"])
    middles = (edges[1:] + edges[:-1]) / 2
    figure, panels = plt.subplots(
        1, 2, figsize=(9, 3.6), layout="constrained", sharey=True
    )
    for axes, (kind, title) in zip(panels, _TITLES.items(), strict=True):
        for name, row in numbers["ratios"].items():
            if row[kind] is not None:
                share = np.array(row[kind]["histogram"]) / row["compared"]
                axes.step(middles, share, where="mid", label=name)
        axes.axvline(0, color="black", linewidth=1)
        axes.set(title=title, xlabel="log10 of variance of RL over that of IW-RAML")
    panels[0].set(ylabel="share of the parameters")
    panels[0].legend(frameon=False, fontsize="small")
    save(figure, path)
