"""Tables and figures of the studies of open questions."""

from __future__ import annotations

import math
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt

from experiments.imm_questions import text_figures
from experiments.imm_questions.tables import tables
from experiments.kit.drawing import distinct, save, shared_legend

Numbers = dict[str, Any]


def report(found: Mapping[str, Numbers], folder: pathlib.Path) -> str:
    """Draws what there is into a folder; returns the tables as Markdown."""
    for name, draw in _FIGURES.items():
        if name in found:
            draw(found[name], folder / f"imm_questions_{name}.png")
    return "\n\n".join(tables(found).values()) + "\n"


def _finite_sample(numbers: Numbers, path: pathlib.Path) -> None:
    cells = numbers["cells"]
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    for features in distinct(cell["features"] for cell in cells):
        members = [cell for cell in cells if cell["features"] == features]
        axes.errorbar(
            [cell["per_parameter"] for cell in members],
            [cell["imm"]["gain"] for cell in members],
            [2 * cell["imm"]["gain_error"] for cell in members],
            marker="o",
            capsize=2,
            lw=1,
            label=f"{features} features, {features + 1} parameters",
        )
    axes.axhline(0, color="black", lw=0.6)
    axes.set(xlabel="examples per parameter", ylabel="gain in test accuracy")
    save(figure, path)


def _gains(numbers: Numbers, path: pathlib.Path) -> None:
    cells = numbers["cells"]
    sizes = distinct(cell["size"] for cell in cells)
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    shown = distinct(cell["arm"] for cell in cells if cell["arm"] != "none")
    width = 0.8 / len(shown)
    for number, arm in enumerate(shown):
        members = {cell["size"]: cell for cell in cells if cell["arm"] == arm}
        axes.bar(
            [place + number * width for place in range(len(sizes))],
            [members[size]["gain"] for size in sizes],
            width,
            yerr=[2 * members[size]["gain_error"] for size in sizes],
            error_kw={"lw": 0.6},
            label=arm,
        )
    axes.set_xticks(
        [place + 0.4 - width / 2 for place in range(len(sizes))],
        [f"n = {size}" for size in sizes],
    )
    axes.axhline(0, color="black", lw=0.6)
    axes.set_ylabel("gain in test accuracy")
    save(figure, path)


# What the horizontal axis counts, by the way in which P_hat is imperfect.
_AMOUNTS = {
    "temperature": "temperature of P_hat",
    "label noise": "share of P_hat's labels that are flipped",
    "pairs": "pairs (x1, y) that P_hat was counted from",
}


def _imperfect(numbers: Numbers, path: pathlib.Path) -> None:
    cells, grid = numbers["cells"], numbers["grid"]
    kinds = distinct(cell["kind"] for cell in cells)
    # Two panels of the grid world, and a place for the legend.
    columns = math.ceil((len(kinds) + 3) / 2)
    figure, grid_of_axes = plt.subplots(
        2, columns, figsize=(4.5 * columns, 7.2), layout="constrained"
    )
    panels = list(grid_of_axes.flat[: len(kinds) + 2])
    names = distinct(cell["arm"] for cell in (*cells, *grid) if cell["arm"] != "none")
    colours = {name: f"C{number}" for number, name in enumerate(names)}
    for axes, kind in zip(panels, kinds, strict=False):
        members = [cell for cell in cells if cell["kind"] == kind]
        _lines(axes, members, colours=colours)
        axes.axhline(
            numbers["plain"]["mean"], color="black", ls=":", lw=1, label="none"
        )
        axes.set(title=kind, xlabel=_AMOUNTS.get(kind), ylabel="test accuracy")
        if kind != "label noise":
            axes.set_xscale("log")
            amounts = distinct(cell["amount"] for cell in members)
            axes.set_xticks(amounts, [f"{amount:g}" for amount in amounts])
            axes.minorticks_off()
    (none,) = [cell for cell in grid if cell["kind"] == "none"]
    others = ("uniform", "opposite")
    for axes, kind in zip(panels[-2:], others, strict=True):
        members = [cell for cell in grid if cell["kind"] == kind]
        _lines(axes, members, colours=colours)
        axes.axhline(none["mean"], color="black", ls=":", lw=1, label="none")
        axes.set(
            title=f"grid world: {kind} policy",
            xlabel=f"share of the {kind} policy in P_hat",
            ylabel="return",
        )
    spare = grid_of_axes.flat[len(panels) :]
    for axes in spare:
        axes.set_axis_off()
    shared_legend(spare[0], panels)
    save(figure, path)


def _regularisers(numbers: Numbers, path: pathlib.Path) -> None:
    cells = numbers["cells"]
    figure, axes = plt.subplots(figsize=(6.5, 4), layout="constrained")
    for number, size in enumerate(distinct(cell["size"] for cell in cells)):
        members = [cell for cell in cells if cell["size"] == size]
        places = range(len(members))
        for name, style in (("plain", ":"), ("imm", "-")):
            axes.plot(
                places,
                [cell[name]["mean"] for cell in members],
                style,
                marker="o",
                ms=3,
                color=f"C{number}",
                label=f"n = {size}, {'IMM' if name == 'imm' else 'none'}",
            )
    axes.set_xticks(places, [f"{cell['decay']:g}" for cell in members])
    axes.set(xlabel="weight decay", ylabel="test accuracy")
    save(figure, path)


def _digits(numbers: Numbers, path: pathlib.Path) -> None:
    cells = numbers["cells"]
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    _lines(axes, cells, along="size")
    axes.set(xscale="log", xlabel="whole images", ylabel="test accuracy")
    save(figure, path)


def _lines(
    axes: Any,
    cells: Sequence[Numbers],
    along: str = "amount",
    colours: Mapping[str, str] | None = None,
) -> None:
    """Draws one line for each arm: means and two standard errors."""
    for name in distinct(cell["arm"] for cell in cells):
        members = [cell for cell in cells if cell["arm"] == name]
        axes.errorbar(
            [cell[along] for cell in members],
            [cell["mean"] for cell in members],
            [2 * cell["error"] for cell in members],
            color=(colours or {}).get(name),
            marker="o",
            ms=3,
            capsize=2,
            lw=1,
            label=name,
        )


_FIGURES = {
    "finite_sample": _finite_sample,
    "restrictions": _gains,
    "text_restrictions": text_figures.restrictions,
    "coefficient_rules": _gains,
    "text_coefficients": text_figures.coefficients,
    "imperfect": _imperfect,
    "regularisers": _regularisers,
    "text_regularisers": text_figures.regularisers,
    "digits": _digits,
}
