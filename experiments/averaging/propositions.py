"""Figures of what the propositions about Two-Tailed Averaging say."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from experiments.kit.drawing import save

Numbers = Mapping[str, Any]

# === The optimal length ===


def draw_lengths(found: Numbers, path: pathlib.Path) -> None:
    """Draws the optimal lengths beside those of 2TA."""
    period = found["period"]
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    number = len(found["losses"])
    shown = np.unique(np.linspace(number // 6, number - 1, 6).astype(int))
    for index in shown:
        losses = found["losses"][index]
        lengths = period * np.arange(1, len(losses) + 1)
        colour = plt.get_cmap("viridis")(index / number)
        left.plot(lengths, losses, color=colour, label=f"step {period * (index + 1)}")
        best = found["optimal"][index]
        left.plot(best, losses[best // period - 1], "o", color=colour, ms=4)
    left.set(xlabel="iterates averaged", ylabel="validation loss, nats a token")
    low = min(min(losses) for losses in found["losses"])
    left.set_ylim(low - 0.03, low + 0.8)
    steps = period * np.arange(1, number + 1)
    right.plot(steps, found["optimal"], "k", lw=1.5, label="optimal length")
    for name, colour in (("1", "#0072b2"), ("2", "#009e73")):
        rows = found["two_tailed"][name]
        label = f"long average, algorithm {name}"
        right.plot(steps, [row["long"] for row in rows], color=colour, label=label)
    right.set(xlabel="step", ylabel="iterates averaged")
    save(figure, path)


# === Least squares ===


def draw_least_squares(found: Numbers, path: pathlib.Path) -> None:
    """Draws the losses of averages on convex problems."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    colours = {
        "2TA": "#009e73",
        "TA, ": "#e69f00",
        "proportional, ": "#56b4e9",
        "Polyak": "#cc79a7",
        "raw": "#bbbbbb",
    }
    styles = ("-", "--", ":")
    for family, colour in colours.items():
        names = [name for name in found["excess_loss"] if name.startswith(family)]
        for name, style in zip(names, styles, strict=False):
            values = found["excess_loss"][name]
            left.loglog(found["steps"], values, color=colour, ls=style, label=name)
    left.set(xlabel="step", ylabel="excess loss, mean over problems")
    right.loglog(
        found["steps"], found["length"]["mean"], color=colours["2TA"], label="mean L"
    )
    right.loglog(
        found["steps"],
        found["length"]["least"],
        color=colours["2TA"],
        ls=":",
        label="least L of all problems",
    )
    right.loglog(found["steps"], found["steps"], "k", lw=0.6, label="all iterates")
    right.set(xlabel="step", ylabel="iterates in the long average")
    save(figure, path)
