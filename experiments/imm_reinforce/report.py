"""Figures of the study on the toroidal grid, and its report."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from experiments.imm_reinforce import published
from experiments.imm_reinforce.tables import tables
from experiments.kit.drawing import distinct, percentile_bars, save
from experiments.kit.grid_config import FIXED

_COLOURS = {
    "none": "#4c4c4c",
    "max-utility": "#0072b2",
    "softmax T=0.5": "#009e73",
    "softmax T=1.0": "#e69f00",
    FIXED: "#cc79a7",
}


def report(found: Mapping[str, dict[str, Any]], folder: pathlib.Path) -> str:
    """Draws what there is into a folder; returns the tables as Markdown."""
    drawers = {
        "figure3": draw_figure_3,
        "search": draw_search,
        "figure5": draw_figure_5,
    }
    for name, draw in drawers.items():
        if name in found:
            draw(found[name], folder / f"imm_reinforce_{name}.png")
    texts = [*tables(found).values()]
    if "figure3" in found:
        texts.append(
            f"{found['figure3']['seconds_after_start']:.1f} s after start-up, "
            f"{found['figure3']['machine']}."
        )
    return "\n\n".join(texts) + "\n"


def draw_figure_3(numbers: dict[str, Any], path: pathlib.Path) -> None:
    """Draws returns against epochs: means, percentiles, the published means."""
    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for arm in distinct(cell["arm"] for cell in numbers["cells"]):
        members = [cell for cell in numbers["cells"] if cell["arm"] == arm]
        epochs = [cell["epochs"] for cell in members]
        returns = [cell["returns"] for cell in members]
        colour = _COLOURS[arm]
        if arm == FIXED:
            means = [np.mean(each) for each in returns]
            axes.plot(epochs, means, ":", color=colour, label=f"IMM, {arm}")
            continue
        label = arm if arm == "none" else f"IMM, {arm}"
        percentile_bars(axes, epochs, returns, colour, label)
        known = {n: values[0] for n, values in published.FIGURE_3[arm].items()}
        axes.plot([*known], [*known.values()], "x", color=colour, ms=5)
    axes.plot([], [], "x", color="black", ms=5, label="published means")
    axes.set_xlabel("epochs of 50 steps")
    axes.set_ylabel(f"return of {numbers['config']['horizon']} steps")
    axes.set_title("REINFORCE on the toroidal grid, with and without IMM")
    save(figure, path)


def draw_search(numbers: dict[str, Any], path: pathlib.Path) -> None:
    """Draws returns against the ratio lambda / (1 + lambda)."""
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    for number, epochs in enumerate(numbers["config"]["search_epochs"]):
        members = [cell for cell in numbers["cells"] if cell["epochs"] == epochs]
        # Side by side, so that bars do not hide each other.
        places = [cell["ratio"] + 0.008 * (number - 1) for cell in members]
        returns = [cell["returns"] for cell in members]
        colour = f"C{number}"
        percentile_bars(axes, places, returns, colour, f"{epochs} epochs")
        known = {
            ratio: values[epochs][0]
            for ratio, values in published.SEARCH.items()
            if epochs in values
        }
        axes.plot([*known], [*known.values()], "x", color=colour, ms=5)
    axes.plot([], [], "x", color="black", ms=5, label="published means")
    axes.set_xlabel("lambda / (1 + lambda)")
    axes.set_ylabel(f"return of {numbers['config']['horizon']} steps")
    save(figure, path)


def draw_figure_5(numbers: dict[str, Any], path: pathlib.Path) -> None:
    """Draws the reward of every cell as a heat map."""
    figure, axes = plt.subplots(figsize=(4.5, 3.8), layout="constrained")
    image = axes.imshow(numbers["rewards"], cmap="viridis", origin="lower")
    figure.colorbar(image, label="reward")
    axes.set_xlabel("x")
    axes.set_ylabel("y")
    save(figure, path)
