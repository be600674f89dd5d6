"""What the page of the study shows, from its rows."""

from __future__ import annotations

import pathlib

import numpy as np

from experiments.kit.about import About
from experiments.kit.rows import Rows
from experiments.mixed_features.report import of_stage
from experiments.mixed_features.report import tables as tables_of_rows
from experiments.mixed_features.running import NEEDS

ABOUT = About(
    "Dong, sections 2.3 to 2.5, Figures 2.1 and 2.2",
    "Do regularised teachers come nearer to the label distribution, where it is known?",
    "python -m experiments.mixed_features --preset=small",
    "40 min, 1 core",
)


def tables(folder: pathlib.Path) -> dict[str, str]:
    """Returns the tables of the page, by name."""
    return tables_of_rows(Rows(folder).read_all(NEEDS))


def headline(folder: pathlib.Path) -> str:
    """Returns what came out, in a line."""
    rows = of_stage(Rows(folder).read_all(NEEDS), "arms")
    if not rows:
        return "The comparison was not run yet"
    parts = []
    for row in rows:
        found = ", ".join(
            f"{arm} {np.mean(row['arms'][arm]['teacher']['tv']):.3f}"
            for arm in ("standard", "soteacher", "early-stopped", "cross-fitted")
        )
        parts.append(f"{row['examples']:,} examples: {found}")
    return "Total variation of teachers to the truth, " + "; ".join(parts)
