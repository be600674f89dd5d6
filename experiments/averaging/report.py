"""Tables and figures of the studies of averages."""

from __future__ import annotations

import math
import pathlib
from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from experiments.averaging.propositions import (
    least_squares_report,
    lengths_report,
)
from experiments.kit.drawing import save, table

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
# Parts whose learning rate is no constant, without averages.
_DROPS = {
    "drop": "drops, at 60% and 80%",
    "late_drop": "drops, at 85%",
    "decay": "drops, linearly from 50%",
}


def report(found: Mapping[str, Numbers], folder: pathlib.Path) -> str:
    """Draws the figures of the parts that are there; returns their tables."""
    parts = []
    if "trajectory" in found:
        curves = dict(found["trajectory"]["curves"])
        curves |= {
            name: found[part]["curves"]["drops"]
            for part, name in _DROPS.items()
            if part in found
        }
        # Of a short run, long periods see no end.
        curves = {name: columns for name, columns in curves.items() if columns}
        parts.append(_trajectory(curves, found["trajectory"]["period"], folder))
    for name, title in (
        ("overfitting", "Over-fitting"),
        ("basin", "A new basin"),
    ):
        if name in found:
            parts.append(_failing(found[name], title, folder / f"averaging_{name}.png"))
    if "lengths" in found:
        parts.append(lengths_report(found["lengths"], folder / "averaging_lengths.png"))
    if "least_squares" in found:
        parts.append(
            least_squares_report(
                found["least_squares"], folder / "averaging_least_squares.png"
            )
        )
    return "\n\n".join(parts) + "\n"


def best_of(curves: Mapping[str, Numbers], family: str) -> str | None:
    """Returns the curve of a family with the lowest last loss, its tuned member."""
    names = [name for name in curves if name.startswith(family)]
    if not names:
        return None
    return min(names, key=lambda name: curves[name]["loss"][-1])


# === One trajectory ===


def _trajectory(
    curves: Mapping[str, Numbers], period: int, folder: pathlib.Path
) -> str:
    rows = []
    early = 0.4
    two_tailed = curves["2TA, E"]
    for name, columns in curves.items():
        steps, losses = columns["step"], columns["loss"]
        at = int(np.searchsorted(steps, early * steps[-1]))
        rows.append(
            [
                name,
                f"{losses[min(at, len(losses) - 1)]:.3f}",
                f"{losses[-1]:.3f}",
                f"{np.interp(steps[-1], two_tailed['step'], two_tailed['loss']):.3f}",
                f"{min(losses):.3f}",
                f"{math.exp(min(losses)):.1f}",
                f"{columns['length'][-1]:,}",
            ]
        )
    raw = two_tailed["raw_loss"]
    at = int(np.searchsorted(two_tailed["step"], early * two_tailed["step"][-1]))
    rows.insert(
        0,
        [
            "iterates themselves",
            f"{raw[at]:.3f}",
            f"{raw[-1]:.3f}",
            f"{two_tailed['loss'][-1]:.3f}",
            f"{min(raw):.3f}",
            f"{math.exp(min(raw)):.1f}",
            "1",
        ],
    )
    titles = [
        "average",
        f"loss at {early:.0%} of the steps",
        "at its last evaluation",
        "2TA, E, at that step",
        "least",
        "as perplexity",
        "iterates in the last",
    ]
    _draw_losses(curves, folder / "averaging_losses.png")
    _draw_lengths(curves, period, folder / "averaging_two_tailed.png")
    return f"Averages along one trajectory, E = {period} steps\n\n" + table(
        titles, rows
    )


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


def _draw_lengths(
    curves: Mapping[str, Numbers], period: int, path: pathlib.Path
) -> None:
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


def _failing(found: Numbers, title: str, path: pathlib.Path) -> str:
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
    rows = []
    for name, columns in curves.items():
        above.plot(columns["step"], columns["loss"], color=colours[name], label=name)
        below.plot(columns["step"], columns["long_length"], color=colours[name])
        events = [event for event in columns["event"] if event]
        resets = sum("empty" in event for event in events)
        rows.append(
            [
                name,
                f"{min(columns['loss']):.3f}",
                f"{columns['loss'][-1]:.3f}",
                sum("switch" in event for event in events),
                resets,
            ]
        )
    rows.insert(
        0,
        [
            "iterates themselves",
            f"{min(first['raw_loss']):.3f}",
            f"{first['raw_loss'][-1]:.3f}",
            "",
            "",
        ],
    )
    if "leaves_at" in found:
        for axes in (above, below):
            axes.axvline(found["leaves_at"], color="k", lw=0.6, ls=":")
    low = min(min(columns["loss"]) for columns in curves.values())
    above.set_ylim(low - 0.05, low + 1.2)
    above.set_ylabel("validation loss, nats a token")
    below.set(xlabel="step", ylabel="iterates in the long average")
    save(figure, path)
    titles = ["average", "least loss", "last loss", "switches", "averages emptied"]
    return f"{title}, E = {found['period']} steps\n\n" + table(titles, rows)
