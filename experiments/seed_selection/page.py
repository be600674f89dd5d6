"""What the page of the study shows, from its rows."""

from __future__ import annotations

import pathlib

import numpy as np

from experiments.kit.about import About
from experiments.kit.drawing import distinct
from experiments.kit.rows import Rows
from experiments.seed_selection.report import groups, half
from experiments.seed_selection.report import tables as tables_of_rows
from experiments.seed_selection.running import NEEDS

ABOUT = About(
    "Dong, sections 3.2 and 3.4, Figures 3.1, 3.4, C.2 and C.3",
    "How well does a probe's confidence tell wrong labels by seed words?",
    "python -m experiments.seed_selection --preset=small --seeds=1,2,3,4,5 "
    "--data_dir=DATA",
    "90 min, 1 core",
)


def tables(folder: pathlib.Path) -> dict[str, str]:
    """Returns the tables of the page, by name."""
    return tables_of_rows(Rows(folder).read_all(NEEDS))


def headline(folder: pathlib.Path) -> str:
    """Returns what came out, in a line."""
    rows = Rows(folder).read_all(NEEDS)
    if not rows:
        return "It was not run yet"
    parts = []
    for name in distinct(row["set"] for row in rows):
        every = groups(rows, name)
        shown = ", ".join(
            f"{probe} {100 * np.mean([half(row) for row in every[probe]]):.1f} %"
            for probe in ("vanilla", "seed-deletion", "random-deletion")
            if probe in every
        )
        parts.append(f"{name}: {shown}")
    return "Wrong labels in the surest half: " + "; ".join(parts)
