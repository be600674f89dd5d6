"""What the page of the study shows, from its rows."""

from __future__ import annotations

import pathlib

import numpy as np

from experiments.bmi_generation.report import NEEDS
from experiments.bmi_generation.report import tables as tables_of_rows
from experiments.kit.about import About
from experiments.kit.rows import Rows

ABOUT = About(
    "BMI, section 4.2, Tables 1 (reverse perplexity) and 2",
    "Is what models say more coherent with BMI?",
    "python -m experiments.bmi_generation --preset=small --data_dir=DATA",
    "2 h, 1 core",
)


def tables(folder: pathlib.Path) -> dict[str, str]:
    """Returns the tables of the page, by name."""
    return tables_of_rows(Rows(folder).read_all(NEEDS))


def headline(folder: pathlib.Path) -> str:
    """Returns what came out, in a line."""
    rows = Rows(folder).read_all(NEEDS)

    def mean(arm: str, *place: str) -> float:
        values = []
        for row in rows:
            if row["arm"] == arm:
                value = row
                for name in place:
                    value = value[name]
                values.append(float(value))  # type: ignore[arg-type]
        return float(np.mean(values))

    names = {
        "none": "without BMI",
        "base": "Phase I",
        "full": "both phases",
        "real": "real text",
    }
    information = ", ".join(
        f"{name} {mean(arm, 'mine', 'mean'):.2f}" for arm, name in names.items()
    )
    reverse = ", ".join(
        f"{name} {mean(arm, 'reverse', 'test'):.0f}" for arm, name in names.items()
    )
    return f"MINE, nats: {information}; reverse perplexity: {reverse}"
