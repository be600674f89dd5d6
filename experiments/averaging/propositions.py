"""Tables and figures of what the propositions about Two-Tailed Averaging say."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from experiments.kit.drawing import save, table

Numbers = Mapping[str, Any]

# === The optimal length ===


def lengths_report(found: Numbers, path: pathlib.Path) -> str:
    """Draws the optimal lengths beside those of 2TA; returns a table of bounds."""
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
    optimal = [min(losses) for losses in found["losses"]]
    titles = [
        "2TA",
        "S below the optimum",
        "L < 2 optimum + E",
        "nearly optimal once between switches",
        "mean loss above the optimal length's",
        "largest",
    ]
    lines = []
    for name, bounds in found["bounds"].items():
        rows = found["two_tailed"][name]
        excess = [row["loss"] - best for row, best in zip(rows, optimal, strict=True)]
        lines.append(
            [
                f"algorithm {name}",
                f"{bounds['short_below_optimal']} of {bounds['evaluations']}",
                f"{bounds['long_below_twice']} of {bounds['evaluations']}",
                f"{bounds['intervals_nearly_optimal']} of {bounds['intervals']}",
                f"{np.mean(excess):.4f}",
                f"{np.max(excess):.4f}",
            ]
        )
    return f"Optimal lengths by brute force, E = {period} steps\n\n" + table(
        titles, lines
    )


# === Least squares ===


def least_squares_report(found: Numbers, path: pathlib.Path) -> str:
    """Draws the losses of averages on convex problems; returns their table."""
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
    shares = (0.01, 0.1, 1.0)
    at = [
        int(np.searchsorted(found["steps"], share * found["steps"][-1]))
        for share in shares
    ]
    text = table(
        ["average, excess loss at", *[f"{share:.0%} of the steps" for share in shares]],
        [
            [name, *[f"{values[index]:.3g}" for index in at]]
            for name, values in found["excess_loss"].items()
        ],
    )
    quarters = ", ".join(f"{value:.1f}" for value in found["switches_by_quarter"])
    return (
        f"Least squares, {found['runs']} problems\n\n{text}\n\n"
        f"Losses at switches only went down in {found['monotone_runs']} of "
        f"{found['runs']} problems; switches by quarter of the run: {quarters}; "
        f"{found['runs_with_switches_in_every_quarter']} problems had some in every "
        f"quarter; L at the end: {found['length']['mean'][-1]:,.0f} in the mean, "
        f"{found['length']['least'][-1]:,.0f} at least."
    )
