"""What the page of the study shows, from its rows."""

from __future__ import annotations

import pathlib

import numpy as np

from experiments.bmi_generation.report import NEEDS, at_gap, by_arms
from experiments.bmi_generation.report import tables as tables_of_rows
from experiments.kit.about import About
from experiments.kit.rows import Rows

ABOUT = About(
    "BMI, Tables 1 and 2",
    "Is what models with BMI say more coherent and more varied?",
    "python -m experiments.bmi_generation --preset=small --seeds=1,2,3 --data_dir=DATA",
    "4 h, 1 core",
)


def tables(folder: pathlib.Path) -> dict[str, str]:
    """Returns the tables of the page, by name."""
    return tables_of_rows(Rows(folder).read_all(NEEDS))


def headline(folder: pathlib.Path) -> str:
    """Returns what came out, in a line."""
    rows = Rows(folder).read_all(NEEDS)
    near = by_arms(at_gap(rows, 0))

    def each(*place: str, digits: int) -> str:
        return ", ".join(
            f"{arm} {np.mean([row[place[0]][place[1]] for row in own]):.{digits}f}"
            for arm, own in near.items()
        )

    return (
        "Information of neighbouring segments, nats: "
        f"{each('mine', 'mean', digits=3)}; reverse perplexity of the test text: "
        f"{each('reverse', 'test', digits=0)}"
    )
