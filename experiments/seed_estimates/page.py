"""What the page of the study shows, from its rows."""

from __future__ import annotations

import pathlib

import numpy as np

from experiments.kit.about import About
from experiments.kit.drawing import distinct
from experiments.kit.rows import Rows
from experiments.seed_estimates.report import of_stage
from experiments.seed_estimates.report import tables as tables_of_rows
from experiments.seed_estimates.running import NEEDS

ABOUT = About(
    "Dong, chapter 3; Northcutt et al.; Korn and Graubard",
    "How good are labels by seeds and classifiers, without true labels and with fifty?",
    "python -m experiments.seed_estimates --preset=small --seeds=1,2,3,4,5 "
    "--data_dir=DATA",
    "1 h, 1 core",
)


def tables(folder: pathlib.Path) -> dict[str, str]:
    """Returns the tables of the page, by name."""
    return tables_of_rows(Rows(folder).read_all(NEEDS))


def headline(folder: pathlib.Path) -> str:
    """Returns what came out, in a line."""
    rows = of_stage(Rows(folder).read_all(NEEDS), "without")
    if not rows:
        return "It was not run yet"
    parts = []
    for name in distinct(row["set"] for row in rows):
        own = [row for row in rows if row["set"] == name]
        truth = 100 * np.mean([row["truth"] for row in own])
        said = 100 * np.mean([row["estimates"]["random"] for row in own])
        parts.append(f"{name} {truth:.1f} %, estimated {said:.1f} %")
    return "Right labels: " + "; ".join(parts)
