"""What the page of the study shows, from its rows."""

from __future__ import annotations

import pathlib

import numpy as np

from experiments.imm_reinforce.published import FIGURE_3
from experiments.imm_reinforce.tables import tables as tables_of_parts
from experiments.kit.about import About, MadeBy
from experiments.kit.rows import Rows

_PARTS = ("figure3", "search", "figure5")
ABOUT = About(
    "IMM, Section 7, Figures 3 and 5",
    "Does the solution of a POMDP help REINFORCE on an 11 x 11 torus?",
    "python -m experiments.imm_reinforce --preset=paper",
    "20 s, 2 cores",
)

_RUN = "python -m experiments.imm_reinforce --preset=paper"
MADE_BY: MadeBy = {
    "agreement": f"{_RUN} --parts=figure3",
    "gains": f"{_RUN} --parts=figure3",
    "bounds": f"{_RUN} --parts=figure5",
}


def tables(folder: pathlib.Path) -> dict[str, str]:
    """Returns the tables of the page, by name."""
    rows = Rows(folder)
    return tables_of_parts({name: rows.read(name) for name in _PARTS})


def headline(folder: pathlib.Path) -> str:
    """Returns what came out, in a line."""
    ours = _mean_returns(folder)

    def pair(epochs: int) -> str:
        arms = ("max-utility", "none")
        here, there = (
            " and ".join(f"{value:.1f}" for value in values)
            for values in (
                [ours[arm, epochs] for arm in arms],
                [FIGURE_3[arm][epochs][0] for arm in arms],
            )
        )
        return f"after {epochs} epochs {here} (authors' code: {there})"

    return f"Mean return with IMM and without: {pair(75)}, {pair(500)}"


def values(folder: pathlib.Path) -> dict[str, str]:
    """Returns mean returns, without and with IMM, for other pages."""
    ours = _mean_returns(folder)
    arms = ("none", "max-utility")
    return {
        f"at_{epochs}": " to ".join(f"{ours[arm, epochs]:.1f}" for arm in arms)
        for epochs in (75, 500)
    }


def _mean_returns(folder: pathlib.Path) -> dict[tuple[str, int], float]:
    cells = Rows(folder).read("figure3")["cells"]
    return {
        (cell["arm"], cell["epochs"]): float(np.mean(cell["returns"])) for cell in cells
    }
