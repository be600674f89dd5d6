"""What the page of the study shows, from its rows."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np

from experiments.kit.about import About, MadeBy
from experiments.kit.rows import Rows
from experiments.seed_transformer.config import MAIN
from experiments.seed_transformer.report import cells
from experiments.seed_transformer.report import tables as tables_of_rows

_COMMAND = "python -m experiments.seed_transformer --preset={preset} --seeds={seeds}"


def _command(preset: str, seeds: str) -> str:
    return f"{_COMMAND.format(preset=preset, seeds=seeds)} --data_dir=DATA"


ABOUT = About(
    "Dong, section 3.4, Table 3.2, Figure 3.5",
    "Does deletion help a transformer that was trained before?",
    _command("small", "1,2,3,4,5"),
    "2 h, 1 core",
)
_MADE_BY: MadeBy = {
    "arms": (_command("small", "1,2,3,4,5"), _command("replaced", "1,2,3,4,5")),
    "dropouts": _command("dropouts", "1"),
    "projected": _COMMAND.format(preset="paper", seeds="1"),
}


def tables(folder: pathlib.Path) -> dict[str, str]:
    """Returns the tables of the page, by name."""
    return tables_of_rows(_rows(folder))


def _rows(folder: pathlib.Path) -> list[Any]:
    return Rows(folder).read_all(("name", "arm", "seed"))


MADE_BY: MadeBy = {
    name: _MADE_BY[name] for name in tables(pathlib.Path(__file__).parent)
}


def headline(folder: pathlib.Path) -> str:
    """Returns what came out, in a line."""
    rows = [row for row in _rows(folder) if row["arm"] in MAIN]
    if not rows:
        return "It was not run yet"
    return "Micro F1 on AG's News: " + ", ".join(
        f"{arm} {np.mean([row['judged'][-1]['micro'] for row in own]):.1f}"
        for name, arm, own in cells(rows)
        if name == "ag-news"
    )
