"""What the page of the study shows, from its rows."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence

import numpy as np

from experiments.bmi_source.report import NEEDS, Row, excess
from experiments.bmi_source.report import tables as tables_of_rows
from experiments.kit.about import About, MadeBy
from experiments.kit.rows import Rows

ABOUT = About(
    "BMI, sections 3.1 and 3.2, no table",
    "Does BMI help where the information of sentences is known, and by which step?",
    "python -m experiments.bmi_source --preset=small --seeds=1,2,3",
    "6.5 h, 1 core",
)
MADE_BY: MadeBy = {
    "sizes": (
        "python -m experiments.bmi_source --preset=small --seeds=1,2,3",
        "python -m experiments.bmi_source --preset=arms --seeds=1,2,3",
    ),
    "coherence": (
        "python -m experiments.bmi_source --preset=small --seeds=1,2,3",
        "python -m experiments.bmi_source --preset=arms --seeds=1,2,3",
    ),
    "phases": (
        "python -m experiments.bmi_source --preset=small --seeds=1,2,3",
        "python -m experiments.bmi_source --preset=arms --seeds=1,2,3",
        "python -m experiments.bmi_source --preset=long --seeds=1,2,3",
    ),
    "topics": "python -m experiments.bmi_source --preset=long --seeds=1,2,3",
    "long": "python -m experiments.bmi_source --preset=long --seeds=1,2,3",
    "long_coherence": "python -m experiments.bmi_source --preset=long --seeds=1,2,3",
}


def tables(folder: pathlib.Path) -> dict[str, str]:
    """Returns the tables of the page, by name."""
    return tables_of_rows(Rows(folder).read_all(NEEDS))


def mean_excess(rows: Sequence[Row], arm: str, length: int) -> float:
    """Returns the mean excess of an arm at 3,000 sentences of a length."""
    own = [
        excess(row)
        for row in rows
        if (row["arm"], row["sentence_length"], row["sentences"]) == (arm, length, 3000)
    ]
    return float(np.mean(own))


def values(folder: pathlib.Path) -> dict[str, str]:
    """Returns numbers that pages name, by name."""
    rows = Rows(folder).read_all(NEEDS)
    return {
        "without": f"{mean_excess(rows, 'none-patient', 20):.3f}",
        "with": f"{mean_excess(rows, 'base-last-patient', 20):.3f}",
    }


def headline(folder: pathlib.Path) -> str:
    """Returns what came out, in a line."""
    rows = Rows(folder).read_all(NEEDS)

    def mean(arm: str, length: int) -> str:
        return f"{mean_excess(rows, arm, length):.3f}"

    def named(arms: Sequence[str], length: int) -> str:
        return ", ".join(f"`{arm}` {mean(arm, length)}" for arm in arms)

    short = ("none", "base", "base-annealed", "full", "full-annealed")
    long = (
        "none-patient",
        "base-annealed",
        "full-annealed",
        "base-last-patient",
        "full-last-annealed",
    )
    return (
        "Nats a token above the floor, each arm at its best, 3,000 sentences of 7 "
        f"words: {named(short, 7)}; of 20 words: {named(long, 20)}"
    )
