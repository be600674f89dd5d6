"""What the page of the study shows, from its rows."""

from __future__ import annotations

import pathlib

import numpy as np

from experiments.distill_language.report import by_arm
from experiments.distill_language.report import tables as tables_of_rows
from experiments.distill_language.running import NEEDS
from experiments.kit.about import About, MadeBy
from experiments.kit.rows import Rows

_COMMAND = (
    "python -m experiments.distill_language --preset={preset} --seeds={seeds} "
    "--data_dir=DATA"
)


def _command(preset: str, seeds: str) -> str:
    return _COMMAND.format(preset=preset, seeds=seeds)


_SMALL = _command("small", "1,2,3")
ABOUT = About(
    "Dong, section 2.4, on language; Hinton et al.; no table",
    "Does a teacher help a language model of a sixteenth of Penn Treebank?",
    _SMALL,
    "3 h, 1 core",
)
_MADE_BY: MadeBy = {
    "arms": (_SMALL, _command("others", "1")),
    "fidelity": _SMALL,
    "lumps": _SMALL,
    "trials": (_command("plain", "10"), _command("trials", "9")),
}


def tables(folder: pathlib.Path) -> dict[str, str]:
    """Returns the tables of the page, by name."""
    return tables_of_rows(Rows(folder).read_all(NEEDS))


MADE_BY: MadeBy = {
    name: _MADE_BY[name] for name in tables(pathlib.Path(__file__).parent)
}


def headline(folder: pathlib.Path) -> str:
    """Returns what came out, in a line."""
    groups = by_arm(Rows(folder).read_all(NEEDS))
    if "none" not in groups:
        return "The comparison was not run yet"
    parts = ", ".join(
        f"{arm} {np.mean([row['test'] for row in own]):.1f}"
        for arm, own in groups.items()
    )
    return f"Test perplexity: {parts}"
