"""What the page of the study shows, from its rows."""

from __future__ import annotations

import pathlib

import numpy as np

from experiments.kit.about import About, MadeBy
from experiments.kit.rows import Rows
from experiments.scarce_text.arms import PEERS
from experiments.scarce_text.report import NEEDS, by_arms, of_study
from experiments.scarce_text.report import tables as tables_of_rows

_COMMAND = "python -m experiments.scarce_text --preset={preset} {seeds}--data_dir=DATA"


def _command(preset: str, seeds: str = "--seeds=1,2,3 ") -> str:
    return _COMMAND.format(preset=preset, seeds=seeds)


ABOUT = About(
    "IMM, Section 6, on a strong base; no table",
    "Which recipe wins on a tenth of a megabyte of words, alone and beside n-grams?",
    _command("small"),
    "40 h, 1 core",
)
_MADE_BY: MadeBy = {
    "trials": (
        _command("search", ""),
        _command("trials", ""),
        _command("counted-trials", ""),
    ),
    **dict.fromkeys(("arms", "frequency", "context"), _command("small")),
    "counted": _command("counted"),
    "curve": _command("curve"),
    "corpora": (_command("corpora"), _command("shakespeare")),
    "published": _command("published", ""),
}
# Of tables that there are rows of.
MADE_BY: MadeBy = {
    name: command
    for name, command in _MADE_BY.items()
    if name in tables_of_rows(Rows(pathlib.Path(__file__).parent).read_all(NEEDS))
}


def tables(folder: pathlib.Path) -> dict[str, str]:
    """Returns the tables of the page, by name."""
    return tables_of_rows(Rows(folder).read_all(NEEDS))


def headline(folder: pathlib.Path) -> str:
    """Returns what came out, in a line."""
    arms = by_arms(of_study(Rows(folder).read_all(NEEDS), "arms"))
    trained = [arm for arm in arms if arm not in PEERS]
    if not trained:
        return "The comparison was not run yet"
    found = "; ".join(
        f"{arm} {np.mean([row['mixed_test'] for row in arms[arm]]):.1f}"
        for arm in [*(peer for peer in PEERS if peer in arms), *trained]
    )
    return f"Test perplexity, mixed with Kneser-Ney 5: {found}"
