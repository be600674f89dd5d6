"""Tables and figures of the study on the toroidal grid."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from experiments.imm_reinforce import reference
from experiments.imm_reinforce.study import RATIOS
from experiments.kit.drawing import percentile_bars, save, spread, table
from experiments.kit.grid_study import ARMS, FIXED

_COLOURS = {
    "none": "#4c4c4c",
    "max-utility": "#0072b2",
    "softmax T=0.5": "#009e73",
    "softmax T=1.0": "#e69f00",
    FIXED: "#cc79a7",
}
_SEEDS_OF_REFERENCE = 30


def report(found: Mapping[str, dict[str, Any]], folder: pathlib.Path) -> str:
    """Draws what there is into a folder; returns the tables as Markdown."""
    texts = []
    if "figure3" in found:
        texts += [figure_3_table(found["figure3"]), agreement(found["figure3"])]
        draw_figure_3(found["figure3"], folder / "imm_reinforce_figure3.png")
        texts.append(
            f"{found['figure3']['seconds_after_start']:.1f} s after start-up, "
            f"{found['figure3']['machine']}."
        )
    if "search" in found:
        texts.append(search_table(found["search"]))
        draw_search(found["search"], folder / "imm_reinforce_search.png")
    if "figure5" in found:
        draw_figure_5(found["figure5"], folder / "imm_reinforce_figure5.png")
    return "\n\n".join(texts) + "\n"


def published_spread(values: Sequence[float] | None) -> str:
    """Returns the same of published numbers: mean, 10th and 90th percentile."""
    if values is None:
        return "-"
    mean, low, high = values[:3]
    return f"{mean:.2f} [{low:.2f}, {high:.2f}]"


def figure_3_table(numbers: dict[str, Any]) -> str:
    """Returns mean return and percentiles by epochs and arm, the published beside."""
    cells = {(c["arm"], c["epochs"]): c["returns"] for c in numbers["cells"]}
    titles = ["epochs"]
    for arm in ARMS:
        titles += [arm, "published"]
    rows = []
    for epochs in numbers["config"]["epochs"]:
        row = [str(epochs)]
        for arm in ARMS:
            row.append(spread(cells[arm, epochs]))
            row.append(published_spread(reference.FIGURE_3[arm].get(epochs)))
        rows.append([*row, spread(cells[FIXED, epochs])])
    return table([*titles, FIXED], rows)


def differences(numbers: dict[str, Any]) -> dict[tuple[str, int], float]:
    """Returns ours minus the published mean, in standard errors of the difference."""
    result = {}
    for cell in numbers["cells"]:
        published = reference.FIGURE_3.get(cell["arm"], {}).get(cell["epochs"])
        values = np.array(cell["returns"])
        if published is None or len(values) < 2:
            continue
        variance = values.var(ddof=1) / len(values)
        variance += published[3] ** 2 / _SEEDS_OF_REFERENCE
        difference = values.mean() - published[0]
        result[cell["arm"], cell["epochs"]] = float(difference / np.sqrt(variance))
    return result


def agreement(numbers: dict[str, Any]) -> str:
    """Returns how many cells are how far from the published ones."""
    by_cell = differences(numbers)
    if not by_cell:
        return "No cell can be compared with a published one."
    distances = np.abs([*by_cell.values()])
    beyond = [
        f"{arm} at {epochs} epochs ({by_cell[arm, epochs]:+.1f})"
        for arm, epochs in by_cell
        if abs(by_cell[arm, epochs]) > 2
    ]
    root_mean_square = np.sqrt(np.mean(distances**2))
    return (
        "Cells that differ from the published mean by more than two standard errors of "
        f"the difference: {int((distances > 2).sum())} of {len(distances)}, by more "
        f"than three: {int((distances > 3).sum())}; the largest is "
        f"{distances.max():.1f}, the root mean square {root_mean_square:.2f}"
        f"{'. Beyond two: ' + ', '.join(beyond) if beyond else ''}."
    )


def search_table(numbers: dict[str, Any]) -> str:
    """Returns mean return and percentiles by ratio and epochs, the published beside."""
    cells = {(c["ratio"], c["epochs"]): c["returns"] for c in numbers["cells"]}
    counts = numbers["config"]["search_epochs"]
    titles = ["ratio"]
    for epochs in counts:
        titles += [f"{epochs} epochs", "published"]
    rows = []
    for ratio in RATIOS:
        row = [str(ratio)]
        for epochs in counts:
            row.append(spread(cells[ratio, epochs]))
            row.append(published_spread(reference.SEARCH[ratio].get(epochs)))
        rows.append(row)
    return table(titles, rows)


def draw_figure_3(numbers: dict[str, Any], path: pathlib.Path) -> None:
    """Draws returns against epochs: means, percentiles, the published means."""
    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for arm in (*ARMS, FIXED):
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
        published = {n: values[0] for n, values in reference.FIGURE_3[arm].items()}
        axes.plot([*published], [*published.values()], "x", color=colour, ms=5)
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
        known = [ratio for ratio in RATIOS if epochs in reference.SEARCH[ratio]]
        values = [reference.SEARCH[ratio][epochs][0] for ratio in known]
        axes.plot(known, values, "x", color=colour, ms=5)
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
