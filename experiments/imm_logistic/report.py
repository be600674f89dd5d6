"""Figures of the study of logistic regression, and its report."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from experiments.imm_logistic.tables import figure_2_means, sweeps, tables
from experiments.kit.drawing import percentile_bars, save

Numbers = dict[str, Any]

_COLOURS = {
    "none": "#8b1a1a",
    "imm": "#2e7d32",
    "interpolation": "#e69f00",
    "noising": "#0072b2",
}


def report(found: Mapping[str, Numbers], folder: pathlib.Path) -> str:
    """Draws what there is into a folder; returns the tables as Markdown."""
    drawers = {
        "figure1": draw_figure_1,
        "figure2": draw_figure_2,
        "figure4": draw_figure_4,
    }
    for name, draw in drawers.items():
        if name in found:
            draw(found[name], folder / f"imm_logistic_{name}.png")
    return "\n\n".join(tables(found).values()) + "\n"


def draw_figure_1(numbers: Numbers, path: pathlib.Path) -> None:
    """Draws IMM(Q) against the ratio."""
    cells = numbers["cells"]
    figure, axes = plt.subplots(figsize=(5.5, 3.8), layout="constrained")
    ratios = [cell["ratio"] for cell in cells]
    risks = [cell["imm_risk"] for cell in cells]
    percentile_bars(axes, ratios, risks, _COLOURS["imm"], "Q")
    entropy = float(np.mean(numbers["entropy_of_target"]))
    axes.axhline(entropy, color="black", ls=":", label="P_hat")
    axes.set_xlabel("lambda / (1 + lambda)")
    axes.set_ylabel("IMM(Q) per example, nats")
    save(figure, path)


def draw_figure_2(numbers: Numbers, path: pathlib.Path) -> None:
    """Draws test accuracy against the number of examples."""
    cells = numbers["cells"]
    sizes = [cell["size"] for cell in cells]
    means = figure_2_means(numbers)
    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for arm in ("none", "imm"):
        values = [cell["accuracies"][arm] for cell in cells]
        percentile_bars(axes, sizes, values, _COLOURS[arm], arm)
    for arm in ("interpolation", "noising"):
        label = "noising, best ratio" if arm == "noising" else arm
        axes.plot(sizes, means[arm], "--", color=_COLOURS[arm], lw=1, label=label)
    axes.set_xlabel("n, examples")
    axes.set_ylabel("test accuracy")
    save(figure, path)


def draw_figure_4(numbers: Numbers, path: pathlib.Path) -> None:
    """Draws test accuracy against the ratio, a panel a learning rate."""
    found = sweeps(numbers["cells"])
    rates = sorted({rate for rate, _, _ in found})
    figure, panels = plt.subplots(
        1, len(rates), figsize=(5 * len(rates), 4), layout="constrained", squeeze=False
    )
    for axes, rate in zip(panels[0], rates, strict=True):
        lines = [(size, values) for each, size, values in found if each == rate]
        for number, (size, values) in enumerate(lines):
            x, y = [*values], [*values.values()]
            percentile_bars(axes, x, y, f"C{number}", f"n = {size}", lw=0.8)
        axes.set_title(f"learning rate {rate}")
        axes.set_xlabel("lambda / (1 + lambda)")
        axes.set_ylabel("test accuracy")
    save(figure, path)
