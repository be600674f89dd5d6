"""What the page of the study shows, from its rows."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping
from typing import Any

from experiments.averaging.tables import best_of, cost, curves_of
from experiments.averaging.tables import tables as tables_of_parts
from experiments.kit.about import About, MadeBy
from experiments.kit.rows import Rows

ABOUT = About(
    "Melis (2023), chapter 3",
    "Is Two-Tailed Averaging, with nothing to tune, as good as tuned averages?",
    "python -m experiments.averaging --preset=ptb",
    "2.5 h, 1 core",
)

_PARTS = "python -m experiments.averaging --preset=ptb --parts="
MADE_BY: MadeBy = {
    "trajectory": f"{_PARTS}trajectory,drop,late_drop",
    "propositions": f"{_PARTS}least_squares",
}


def tables(folder: pathlib.Path) -> dict[str, str]:
    """Returns the tables of the page, by name."""
    found = _found(folder)
    return {**tables_of_parts(found), "cost": cost(found)}


def headline(folder: pathlib.Path) -> str:
    """Returns what came out, in a line."""
    curves = curves_of(_found(folder))
    last = {name: columns["loss"][-1] for name, columns in curves.items()}
    tuned = [
        f"{family} {last[best]:.3f}"
        for family in ("TA", "EMA", "proportional")
        if (best := best_of(curves, f"{family}, "))
    ]
    return (
        f"2TA {last['2TA, E']:.3f} nats a token, untuned; best tuned "
        f"{', '.join(tuned)}; iterates {curves['2TA, E']['raw_loss'][-1]:.3f} "
        "(one seed)"
    )


def _found(folder: pathlib.Path) -> Mapping[str, dict[str, Any]]:
    rows = Rows(folder)
    return {name: rows.read(name) for name in rows.names()}
