"""What the page of the study shows, from its rows."""

from __future__ import annotations

import pathlib

import numpy as np

from experiments.kit.about import About
from experiments.kit.rows import Rows
from experiments.seed_backdoor.report import groups
from experiments.seed_backdoor.report import tables as tables_of_rows
from experiments.seed_backdoor.running import NEEDS

ABOUT = About(
    "Dong, section 3.1: seeds are triggers that nobody planted",
    "Does deletion keep a classifier from learning a trigger?",
    "python -m experiments.seed_backdoor --preset=small --seeds=1,2,3,4,5 "
    "--data_dir=DATA",
    "40 min, 1 core",
)


def tables(folder: pathlib.Path) -> dict[str, str]:
    """Returns the tables of the page, by name."""
    return tables_of_rows(Rows(folder).read_all(NEEDS))


def headline(folder: pathlib.Path) -> str:
    """Returns what came out, in a line."""
    rows = Rows(folder).read_all(NEEDS)
    if not rows:
        return "It was not run yet"
    name, share = rows[0]["set"], max(row["share"] for row in rows)
    every = groups(rows, name, share)
    return f"A trigger in {100 * share:g} % succeeds: " + ", ".join(
        f"{defence} {np.mean([row['success'] for row in own]):.0f} %"
        for defence, own in every.items()
    )
