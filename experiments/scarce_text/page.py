"""What the page of the study shows, from its rows."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.kit.about import About, MadeBy
from experiments.kit.rows import Rows
from experiments.scarce_text.arms import PEERS
from experiments.scarce_text.factors import factors, untuned_curve
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
    "factors": (_command("small"), _command("curve")),
    "counted": _command("counted"),
    "curve": _command("curve"),
    "corpora": (_command("corpora"), _command("shakespeare")),
    "published": _command("published", ""),
}


def tables(folder: pathlib.Path) -> dict[str, str]:
    """Returns the tables of the page, by name."""
    rows = Rows(folder).read_all(NEEDS)
    found = tables_of_rows(rows)
    arms = _trained(rows)
    if arms:
        curve = of_study(rows, "curve")
        found["factors"] = factors(arms, curve, untuned_curve(folder.parent))
    return found


def _trained(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Returns rows of study `arms` by arm, the best first, without n-grams."""
    arms = by_arms(of_study(rows, "arms"))
    return {arm: own for arm, own in arms.items() if arm not in PEERS}


# Of tables that there are rows of.
MADE_BY: MadeBy = {
    name: command
    for name, command in _MADE_BY.items()
    if name in tables(pathlib.Path(__file__).parent)
}


def headline(folder: pathlib.Path) -> str:
    """Returns what came out, in a line."""
    rows = Rows(folder).read_all(NEEDS)
    trained = _trained(rows)
    if not trained:
        return "The comparison was not run yet"
    arms = by_arms(of_study(rows, "arms"))
    means = {
        arm: float(np.mean([row["mixed_test"] for row in own]))
        for arm, own in arms.items()
    }
    found = "; ".join(f"{arm} {mean:.1f}" for arm, mean in means.items())
    best = next(iter(trained))
    share = untuned_curve(folder.parent).share(means[best])
    factor = share / trained[best][0]["fraction"]
    return (
        f"Test perplexity, mixed with Kneser-Ney 5: {found}; {best} is worth a data "
        f"factor of {factor:.1f} over the untuned recipe alone"
    )
