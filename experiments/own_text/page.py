"""What the page of the study shows, from its rows."""

from __future__ import annotations

import pathlib

from experiments.kit.about import About
from experiments.kit.rows import Rows
from experiments.own_text.report import NEEDS, imm_gains, mixture_gains, tables_of

ABOUT = About(
    "no table of a document",
    "What does `rlm_tf train` reach on texts of five kinds, beside Kneser-Ney?",
    "python -m experiments.own_text --minutes=5",
    "3 h, 2 cores",
)


def tables(folder: pathlib.Path) -> dict[str, str]:
    """Returns the tables of the page, by name."""
    return tables_of(Rows(folder).read_all(NEEDS))


def headline(folder: pathlib.Path) -> str:
    """Returns what came out, in a line."""
    rows = Rows(folder).read_all(NEEDS)
    mixed = mixture_gains(rows)
    parts = [f"{name} {gain:.0f} %" for name, (gain, _) in mixed.items()]
    told = [
        f"{_clear(imm_gains(rows, arm))} {words}"
        for arm, words in (
            ("none", "of as many epochs without"),
            ("longer", "of one trained longer without"),
        )
    ]
    return (
        "The served mixture takes fewer bits per byte of the test text than "
        f"Kneser-Ney 5: {', '.join(parts)} (means of seeds; by more than two standard "
        f"errors on {_clear(mixed)}); one small model with IMM is ahead by more than "
        f"two standard errors on {told[0]}, on {told[1]}"
    )


def _clear(gains: dict[str, tuple[float, float]]) -> str:
    clear = sum(gain > 2 * error for gain, error in gains.values())
    behind = sum(gain < -2 * error for gain, error in gains.values())
    return f"{clear} of {len(gains)} texts" + (
        f" (behind on {behind})" if behind else ""
    )
