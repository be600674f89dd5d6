"""Figures of ELECTRA with one optimiser and two."""

from __future__ import annotations

import math
import pathlib
from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np

from experiments.electra.chosen_rows import ORDER, Row, cells, primary
from experiments.kit.drawing import distinct, save
from rlm_tf.command_line.wording import number_of
from rlm_tf.objectives.replaced_tokens import bound

_COLOURS = dict(
    zip(ORDER, ("#4c4c4c", "#0072b2", "#009e73", "#cc79a7", "#d55e00"), strict=True)
)
_DASHES = {1: ":", 2: "--", 4: "-"}
# Of Figure 1.5: C, c, the steps, the layers of the detector and the first loss.
_ERROR_WEIGHT, _CONDITION, _MAP_STEPS = 0.2, 3.0, 1000
_DETECTOR_LAYERS, _FIRST_LOSS = 4, math.log(8000)


def draw_curves(rows: Sequence[Row], path: pathlib.Path) -> None:
    """Draws F1 and cross-entropy on the primary text over steps (Figures 1.1, 1.2)."""
    figure, axes = plt.subplots(1, 3, figsize=(13, 4.6), layout="constrained")
    titles = ("F1, text of one generator", "nats a piece", "F1, own generator")
    for (arm, generator), own in cells(rows).items():
        name = primary(own[0])
        fields = (f"{name}_f1", f"{name}_cross_entropy", "val_f1")
        for panel, field in zip(axes, fields, strict=True):
            curves = [row["curve"][field] for row in own if field in row["curve"]]
            if not curves:
                continue
            steps = np.linspace(0, own[0]["steps"], len(curves[0]) + 1)[1:]
            panel.plot(
                steps,
                np.mean(curves, axis=0),
                _DASHES.get(generator, "-."),
                color=_COLOURS[arm],
                label=f"{arm}, {number_of('layer', generator)}",
            )
    for panel, title in zip(axes, titles, strict=True):
        panel.set(xlabel="steps", title=title)
    save(figure, path, shares_legend=True)


def draw_sizes(rows: Sequence[Row], path: pathlib.Path) -> None:
    """Draws F1 against the generator's layers, from the lowest seed to the highest."""
    figure, panel = plt.subplots(figsize=(5, 4), layout="constrained")
    for (arm, generator), own in cells(rows).items():
        values = [row["own"]["test"]["f1"] for row in own]
        named = panel.get_legend_handles_labels()[1]
        panel.errorbar(
            [generator],
            [np.mean(values)],
            [[np.mean(values) - min(values)], [max(values) - np.mean(values)]],
            fmt="o",
            capsize=3,
            color=_COLOURS[arm],
            label=arm if arm not in named else None,
        )
    layers = distinct(generator for _, generator in cells(rows))
    panel.set(xlabel="layers of the generator", ylabel="F1", xticks=sorted(layers))
    save(figure, path)


def draw_sweep(rows: Sequence[Row], path: pathlib.Path) -> None:
    """Draws F1 over steps at several rates and weights (Figures 1.3, 1.4, 1.6)."""
    panels = distinct((row["arm"], row["generator"]) for row in rows)
    figure, axes = plt.subplots(
        1,
        len(panels),
        figsize=(4.2 * len(panels), 3.6),
        layout="constrained",
        squeeze=False,
        sharey=True,
    )
    for (arm, generator), panel in zip(panels, axes[0], strict=True):
        own = [r for r in rows if (r["arm"], r["generator"]) == (arm, generator)]
        for row in own:
            (values,) = [
                found
                for field, found in row["curve"].items()
                if ":" in field and field.endswith("_f1")
            ][:1] or [[]]
            looks = row["steps"] / max(len(row["curve"].get("epoch", values)), 1)
            gone = " (diverged)" if "diverged" in row else ""
            weight = f", weight {row['weight']:g}" if row["weight"] != 50 else ""
            panel.plot(
                looks * np.arange(1, len(values) + 1),
                values,
                label=f"rate {row['rate']:g}{weight}{gone}",
            )
        panel.set(
            xlabel="steps", title=f"{arm}, generator of {number_of('layer', generator)}"
        )
    axes[0][0].set_ylabel("F1, text of one generator")
    save(figure, path)


def draw_map(path: pathlib.Path) -> None:
    """Draws the detector's error by both rates (Figure 1.5), for two generators.

    Equation 1.10, with constants of ours, for the thesis names none: both networks
    begin at ln 8,000 nats and take 1,000 steps, c = 3, C = 0.2. The diagonal is one
    optimiser; dots are the generator's best rate for each rate of the detector.
    """
    figure, axes = plt.subplots(
        1, 2, figsize=(9.5, 4.2), layout="constrained", sharey=True
    )
    rates = np.geomspace(1e-5, 1e-2, 121)
    for panel, layers in zip(axes, (1, 12), strict=True):
        error = bounds_by_rates(rates, layers)
        shades = panel.contourf(rates, rates, error, 20, cmap="viridis_r")
        panel.plot(rates, rates, color="white", lw=1.5, label="one optimiser")
        inside = [inner_minimum(row) for row in error]
        found = [(rates[i], rate) for i, rate in zip(inside, rates, strict=True) if i]
        if found:
            panel.plot(
                *zip(*found, strict=True), ".", color="#d55e00", label="sweet spots"
            )
        panel.set(
            xscale="log",
            yscale="log",
            xlabel="rate of the generator",
            title=f"generator of {number_of('layer', layers)}",
        )
        panel.legend(fontsize=8, loc="upper left")
    axes[0].set_ylabel("rate of the detector")
    figure.colorbar(shades, ax=axes, label="bound on the detector's error")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def bounds_by_rates(rates: np.ndarray, layers: int) -> np.ndarray:
    """Returns Equation 1.10's bound on the error of four layers, `[D, G]`.

    Args:
        rates: Of the detector, and of the generator.
        layers: Of the generator.
    """
    losses = _FIRST_LOSS * _left(rates, layers)
    left = _left(rates, _DETECTOR_LAYERS)
    return np.array([bound(losses, k, _ERROR_WEIGHT).numpy() for k in left])


def _left(rates: np.ndarray, layers: int) -> np.ndarray:
    """Returns what so many steps leave of an error, by rate."""
    speed = _CONDITION ** (2 * (layers - 1) / layers)
    return (1 - rates * speed) ** _MAP_STEPS


def inner_minimum(values: np.ndarray) -> int | None:
    """Returns where values have a minimum with higher ones on both sides."""
    place = int(np.argmin(values[:-1]))
    inside = 0 < place < len(values) - 2
    return place if inside and values[place] < values[place + 1] else None
