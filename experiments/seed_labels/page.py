"""What the page of the study shows, from its rows."""

from __future__ import annotations

import pathlib

from experiments.kit.about import About
from experiments.kit.rows import Rows
from experiments.seed_labels.report import tables as tables_of_rows
from experiments.seed_labels.running import NEEDS

ABOUT = About(
    "Dong, section 3.3, Table 3.1, Figures 3.2 and 3.3",
    "What do seed words label, how often wrongly, and what does deletion leave?",
    "python -m experiments.seed_labels --preset=small --data_dir=DATA",
    "5 min, 1 core",
)


def tables(folder: pathlib.Path) -> dict[str, str]:
    """Returns the tables of the page, by name."""
    return tables_of_rows(Rows(folder).read_all(NEEDS))


def headline(folder: pathlib.Path) -> str:
    """Returns what came out, in a line."""
    rows = Rows(folder).read_all(NEEDS)
    if not rows:
        return "It was not run yet"
    parts = [
        f"{row['set']} {100 * row['rules']['published, first']['noise']:.1f} % and "
        f"{100 * row['rules']['words, abstain']['noise']:.1f} %"
        for row in rows
        if row["view"] == "subject+body"
    ]
    return "Wrong labels by the published rule and by ours: " + ", ".join(parts)
