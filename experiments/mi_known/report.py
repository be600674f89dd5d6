"""Tables and figure of the estimators on known sources."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from experiments.kit.drawing import distinct, save, table, with_deviation

Numbers = Mapping[str, Any]


def report(parts: Mapping[str, Numbers], folder: pathlib.Path) -> str:
    """Draws the estimates of normal pairs, and returns the tables."""
    if "gaussian" in parts:
        draw(parts["gaussian"], folder / "mi_known_gaussian.png")
    return "\n\n".join(tables(parts).values()) + "\n"


def tables(parts: Mapping[str, Numbers]) -> dict[str, str]:
    """Returns the tables of the parts there are, by name."""
    found = {}
    if "gaussian" in parts:
        found["gaussian"] = gaussian_table(parts["gaussian"])
    for name, what in (("markov", "gap"), ("topic", "distance")):
        if name in parts:
            found[name] = source_table(parts[name]["rows"], what)
    return found


def gaussian_table(numbers: Numbers) -> str:
    """Returns the table of estimators against the truth, in nats."""
    cells = numbers["cells"]
    truths = distinct(cell["information"] for cell in cells)
    lines = []
    for name in distinct(cell["estimator"] for cell in cells):
        own = [cell for cell in cells if cell["estimator"] == name]
        noise = np.mean([run["deviation"] for run in own[-1]["runs"]])
        lines.append(
            (
                name,
                *(with_deviation([r["mean"] for r in cell["runs"]]) for cell in own),
                f"{noise:.2f}",
            )
        )
    titles = [f"{truth:g} nats" for truth in truths]
    return table(
        ("estimator", *titles, f"deviation of quarters at {truths[-1]:g} nats"), lines
    )


def source_table(rows: Sequence[Numbers], what: str) -> str:
    """Returns the table of a source: the truth, and what the protocol finds."""
    lines = []
    for value in distinct(row[what] for row in rows):
        own = [row for row in rows if row[what] == value]
        truths = [row["information"] for row in own]
        share = [row["mine"]["mean"] / row["information"] for row in own]
        above = max(
            (row["mine"]["mean"] - row["information"]) / row["mine"]["standard_error"]
            for row in own
        )
        lines.append(
            (
                value,
                with_deviation(truths, 3),
                *(
                    with_deviation([row[name]["mean"] for row in own], 3)
                    for name in ("mine", "nwj", "shuffled")
                ),
                with_deviation(share),
                f"{above:+.1f}",
            )
        )
    return table(
        (
            what,
            "information",
            "MINE",
            "NWJ",
            "half a block apart",
            "share found",
            "most standard errors above",
        ),
        lines,
    )


def draw(numbers: Numbers, path: pathlib.Path) -> None:
    """Draws estimates against the truth."""
    cells = numbers["cells"]
    truths = distinct(cell["information"] for cell in cells)
    figure, axes = plt.subplots(figsize=(6, 4.2), layout="constrained")
    axes.plot(truths, truths, color="black", linewidth=1, label="truth")
    for name in distinct(cell["estimator"] for cell in cells):
        own = [cell for cell in cells if cell["estimator"] == name]
        values = [[run["mean"] for run in cell["runs"]] for cell in own]
        axes.errorbar(
            truths,
            [np.mean(each) for each in values],
            yerr=[np.std(each, ddof=1) if len(each) > 1 else 0.0 for each in values],
            marker="o",
            capsize=3,
            label=name,
        )
    axes.set(xlabel="mutual information, nats", ylabel="estimate, nats")
    axes.legend(frameon=False)
    save(figure, path)
