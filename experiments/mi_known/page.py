"""What the page of the study shows, from its rows."""

from __future__ import annotations

import pathlib

import numpy as np

from experiments.kit.about import About
from experiments.kit.rows import Rows
from experiments.mi_known.report import tables as tables_of_parts

# Nats of which no share is told.
_LITTLE = 0.5
_PARTS = ("gaussian", "markov", "topic")
ABOUT = About(
    "BMI, section 4.2 (its instrument)",
    "What do estimators find of mutual information that is known?",
    "python -m experiments.mi_known --preset=small",
    "32 min, 1 core",
)


def tables(folder: pathlib.Path) -> dict[str, str]:
    """Returns the tables of the page, by name."""
    rows = Rows(folder)
    return tables_of_parts({name: rows.read(name) for name in _PARTS})


def headline(folder: pathlib.Path) -> str:
    """Returns what came out, in a line."""
    rows = Rows(folder)
    cells = rows.read("gaussian")["cells"]
    most = max(cell["information"] for cell in cells)
    at_most = {
        cell["estimator"]: np.mean([run["mean"] for run in cell["runs"]])
        for cell in cells
        if cell["information"] == most
    }
    shares = [
        row["mine"]["mean"] / row["information"]
        for name in ("markov", "topic")
        for row in rows.read(name)["rows"]
        if row["information"] >= _LITTLE
    ]
    found = "; ".join(
        f"{name} {value:.1f}"
        for name, value in at_most.items()
        if "mean of batches" not in name
    )
    return (
        f"Of {most:g} nats between normal variables: {found}; the protocol for texts "
        f"finds {100 * min(shares):.0f} to {100 * max(shares):.0f} % of what segments "
        f"of known sources share, from {_LITTLE:g} nats on"
    )
