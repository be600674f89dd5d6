"""What the page of the study shows, from its rows."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence

import numpy as np

from experiments.bmi_lm.config import PRESETS
from experiments.bmi_lm.report import NEEDS, Row
from experiments.bmi_lm.report import tables as tables_of_rows
from experiments.kit.about import About, MadeBy
from experiments.kit.paired import paired_difference
from experiments.kit.rows import Rows

_SMALL = "python -m experiments.bmi_lm --preset=small --seeds=1,2,3 --data_dir=DATA"
ABOUT = About(
    "BMI, Table 1 and Figure 2",
    "Does BMI lower the perplexity of an AWD-LSTM on an eighth of Penn Treebank?",
    _SMALL,
    "7.5 h, 1 core",
)
MADE_BY: MadeBy = {
    **dict.fromkeys(("perplexity", "mixed", "averages", "cost"), _SMALL),
    "trials": "python -m experiments.bmi_lm --preset=base --seeds=9 --data_dir=DATA",
    "weights": "python -m experiments.bmi_lm --preset=weights --seeds=9 "
    "--data_dir=DATA",
    "projected": "python -m experiments.bmi_lm --preset=paper --data_dir=DATA",
}


def tables(folder: pathlib.Path) -> dict[str, str]:
    """Returns the tables of the page, by name."""
    return tables_of_rows(Rows(folder).read_all(NEEDS))


def _test(rows: Sequence[Row], arm: str) -> dict[int, float]:
    """Returns the finetuned models' test perplexity, by seed, at the chosen weight."""
    weights = (None, *PRESETS["small"].weights)
    return {
        row["seed"]: row["finetuned"]["test"]["alone"]
        for row in rows
        if row["arm"] == arm and row["weight"] in weights and "finetuned" in row
    }


def headline(folder: pathlib.Path) -> str:
    """Returns what came out, in a line."""
    rows = Rows(folder).read_all(NEEDS)
    plain, longer = _test(rows, "none"), _test(rows, "none-long")
    found = [f"without {np.mean([*plain.values()]):.1f}"]
    for arm, name in (
        ("base", "Phase I"),
        ("full", "both phases"),
        ("full-last", "both by last features"),
    ):
        own = _test(rows, arm)
        pairs = [(own[seed], plain[seed]) for seed in own if seed in plain]
        found.append(
            f"{name} {np.mean([*own.values()]):.1f} "
            f"({paired_difference(pairs).replace('*', '')})"
        )
    if longer:
        found.append(
            "without, for the seconds of both phases, "
            f"{np.mean([*longer.values()]):.1f}"
        )
    return f"Test perplexity, finetuned: {', '.join(found)}"
