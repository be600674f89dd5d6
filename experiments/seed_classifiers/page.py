"""What the page of the study shows, from its rows."""

from __future__ import annotations

import pathlib

import numpy as np

from experiments.kit.about import About, MadeBy
from experiments.kit.rows import Rows
from experiments.seed_classifiers.report import cells, last, of_stage
from experiments.seed_classifiers.report import tables as tables_of_rows
from experiments.seed_classifiers.running import NEEDS

_COMMAND = "python -m experiments.seed_classifiers --preset={preset} --seeds={seeds}"


def _command(preset: str, seeds: str = "1,2,3,4,5") -> str:
    return f"{_COMMAND.format(preset=preset, seeds=seeds)} --data_dir=DATA"


ABOUT = About(
    "Dong, section 3.4, Table 3.2, Figures 3.3 and C.1",
    "Labels by seed words: is it better to select them, or to delete words?",
    _command("small"),
    "4 h, 1 core",
)
_MADE_BY: MadeBy = {
    "classifiers": (_command("small"), _command("peers")),
    "fractions": _command("fractions"),
    "ratios": _command("ratios"),
    "pools": (_command("pools"), _command("small")),
    "tool": _command("tool"),
    "pairs": (_command("small"), _command("peers")),
    "tune": (_command("tune", "11,12"), _command("tune-peers", "11,12")),
}


def tables(folder: pathlib.Path) -> dict[str, str]:
    """Returns the tables of the page, by name."""
    return tables_of_rows(Rows(folder).read_all(NEEDS))


MADE_BY: MadeBy = {
    name: _MADE_BY[name] for name in tables(pathlib.Path(__file__).parent)
}


def headline(folder: pathlib.Path) -> str:
    """Returns what came out, in a line."""
    rows = of_stage(Rows(folder).read_all(NEEDS), "main")
    if not rows:
        return "The comparison was not run yet"
    parts: dict[str, list[str]] = {}
    for name, arm, own in cells(rows):
        if arm in ("vanilla", "random-deletion", "ours-random", "oracle"):
            score = np.mean([last(row) for row in own])
            parts.setdefault(name, []).append(f"{arm} {score:.1f}")
    return "Micro F1: " + "; ".join(
        f"{name}: {', '.join(own)}" for name, own in parts.items()
    )
