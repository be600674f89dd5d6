"""Tables and figures of the studies of averages."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt

from experiments.averaging.propositions import draw_least_squares, draw_lengths
from experiments.averaging.tables import best_of, curves_of, tables
from experiments.kit.drawing import save

Numbers = Mapping[str, Any]

_COLOURS = {
    "raw": "#bbbbbb",
    "2TA": "#009e73",
    "TA": "#e69f00",
    "EMA": "#0072b2",
    "Polyak": "#cc79a7",
    "proportional": "#56b4e9",
    "drops": "#000000",
}
_TITLES = {
    "trajectory": "Averages along one trajectory, E = {period} steps",
    "overfitting": "Over-fitting, E = {period} steps",
    "basin": "A new basin, E = {period} steps",
    "lengths": "Optimal lengths by brute force, E = {period} steps",
    "least_squares": "Least squares, {runs} problems",
}


def report(found: Mapping[str, Numbers], folder: pathlib.Path) -> str:
    """Draws the figures of the parts that are there; returns their tables."""
    if "trajectory" in found:
        curves = curves_of(found)
        _draw_losses(curves, folder / "averaging_losses.png")
        _draw_periods(curves, folder / "averaging_two_tailed.png")
    for name, draw in (
        ("overfitting", _draw_failing),
        ("basin", _draw_failing),
        ("lengths", draw_lengths),
        ("least_squares", draw_least_squares),
    ):
        if name in found:
            draw(found[name], folder / f"averaging_{name}.png")
    parts = []
    for name, text in tables(found).items():
        if name in _TITLES:
            parts.append(_TITLES[name].format_map(found[name]))
        parts.append(text)
    return "\n\n".join(parts) + "\n"


# === One trajectory ===


def _draw_losses(curves: Mapping[str, Numbers], path: pathlib.Path) -> None:
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    two_tailed = curves["2TA, E"]
    axes.plot(
        two_tailed["step"],
        two_tailed["raw_loss"],
        color=_COLOURS["raw"],
        label="iterates",
    )
    families = ("drops", "Polyak", "proportional", "EMA", "TA, ")
    shown = [best_of(curves, family) for family in families]
    for name in [*shown, "2TA, E"]:
        if name is None:
            continue
        family = name.split(",")[0]
        label = f"learning rate {name}" if family == "drops" else name
        axes.plot(
            curves[name]["step"],
            curves[name]["loss"],
            color=_COLOURS[family],
            lw=2.0 if family == "2TA" else 1.2,
            label=label,
        )
    low = min(min(columns["loss"]) for columns in curves.values())
    axes.set_ylim(low - 0.02, low + 0.6)
    axes.set(xlabel="step", ylabel="validation loss, nats a token")
    save(figure, path)


def _draw_periods(curves: Mapping[str, Numbers], path: pathlib.Path) -> None:
    figure, (above, below) = plt.subplots(
        2, 1, figsize=(7, 6.5), layout="constrained", sharex=True
    )
    low = min(min(columns["loss"]) for columns in curves.values())
    styles = {
        "2TA, E/4": "#56b4e9",
        "2TA, E": "#009e73",
        "2TA, 4E": "#d55e00",
        "2TA, E, by training loss": "#cc79a7",
    }
    styles = {name: colour for name, colour in styles.items() if name in curves}
    for name, colour in styles.items():
        columns = curves[name]
        above.plot(columns["step"], columns["loss"], color=colour, label=name, lw=1.3)
    above.set_ylim(low - 0.02, low + 0.6)
    above.set_ylabel("validation loss, nats a token")
    for name, colour in styles.items():
        if name == "2TA, E, by training loss":
            continue
        columns = curves[name]
        below.plot(
            columns["step"], columns["long_length"], color=colour, label=f"{name}: L"
        )
    columns = curves["2TA, E"]
    below.plot(
        columns["step"],
        columns["short_length"],
        color=styles["2TA, E"],
        ls=":",
        label="2TA, E: S",
    )
    below.set(xlabel="step", ylabel="iterates averaged")
    save(figure, path)


# === Where assumptions fail ===


def _draw_failing(found: Numbers, path: pathlib.Path) -> None:
    figure, (above, below) = plt.subplots(
        2, 1, figsize=(7, 6), layout="constrained", sharex=True
    )
    curves = found["curves"]
    first = curves["2TA"]
    above.plot(
        first["step"], first["raw_loss"], color=_COLOURS["raw"], label="iterates"
    )
    colours = {
        "2TA": "#009e73",
        "2TA, both emptied": "#d55e00",
        "2TA, algorithm 1": "#0072b2",
    }
    for name, columns in curves.items():
        above.plot(columns["step"], columns["loss"], color=colours[name], label=name)
        below.plot(columns["step"], columns["long_length"], color=colours[name])
    if "leaves_at" in found:
        for axes in (above, below):
            axes.axvline(found["leaves_at"], color="k", lw=0.6, ls=":")
    low = min(min(columns["loss"]) for columns in curves.values())
    above.set_ylim(low - 0.05, low + 1.2)
    above.set_ylabel("validation loss, nats a token")
    below.set(xlabel="step", ylabel="iterates in the long average")
    save(figure, path)
