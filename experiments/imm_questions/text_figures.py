"""Figures of the questions that a small language model answers."""

from __future__ import annotations

import pathlib
from typing import Any

import matplotlib.pyplot as plt

from experiments.kit.drawing import distinct, save

Numbers = dict[str, Any]


def restrictions(numbers: Numbers, path: pathlib.Path) -> None:
    """Draws perplexities by restricted models."""
    cells = numbers["cells"]
    figure, axes = plt.subplots(figsize=(6.5, 3.5), layout="constrained")
    # Points: bars would have to begin at 0, where differences cannot be seen.
    for place, cell in enumerate(cells):
        axes.plot(cell["test"], place, "o", color="#0072b2")
        axes.annotate(
            f"{cell['test']:.1f}",
            (cell["test"], place),
            xytext=(8, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
        )
    axes.set_yticks(range(len(cells)), [cell["arm"] for cell in cells])
    axes.invert_yaxis()
    axes.margins(x=0.15, y=0.08)
    axes.set_xlabel("test perplexity")
    save(figure, path)


def coefficients(numbers: Numbers, path: pathlib.Path) -> None:
    """Draws perplexities by lambda."""
    cells = numbers["cells"]
    none = cells[0]
    figure, panels = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    for number, source in enumerate(distinct(c["source"] for c in cells[1:])):
        members = [cell for cell in cells if cell["source"] == source]
        fixed = [cell for cell in members if "values" not in cell]
        amounts = [float(cell["arm"].split()[1]) for cell in fixed]
        colour = f"C{number}"
        tests = [cell["test"] for cell in fixed]
        panels[0].plot(amounts, tests, "o-", color=colour, label=f"P_hat of {source}")
        rules = [cell for cell in members if "values" in cell]
        for rule, style in zip(rules, ("--", ":"), strict=True):
            label = f"{rule['arm']}, P_hat of {source}"
            panels[0].axhline(rule["test"], color=colour, ls=style, label=label)
            panels[1].plot(rule["values"], style, color=colour, label=label)
    panels[0].axhline(none["test"], color="black", lw=1, label="none")
    panels[0].set(xscale="log", xlabel="lambda", ylabel="test perplexity")
    panels[1].set(xlabel="epoch", ylabel="lambda of the rules")
    save(figure, path)


def regularisers(numbers: Numbers, path: pathlib.Path) -> None:
    """Draws perplexities by dropout and weight decay."""
    cells = numbers["cells"]
    figure, axes = plt.subplots(figsize=(6, 3.8), layout="constrained")
    for name, colour in (("none", "#4c4c4c"), ("imm", "#0072b2")):
        members = [c for c in cells if c["arm"] == name and not c["decay"]]
        axes.plot(
            [c["dropout"] for c in members],
            [c["test"] for c in members],
            "o-",
            color=colour,
            label=name,
        )
    axes.set(xlabel="dropout", ylabel="test perplexity")
    save(figure, path)
