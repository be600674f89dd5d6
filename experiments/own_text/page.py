"""What the page of the study shows, from its rows."""

from __future__ import annotations

import pathlib

from experiments.kit.about import About
from experiments.kit.rows import Rows
from experiments.own_text.report import NEEDS, tables_of

ABOUT = About(
    "no table of a document",
    "What does `rlm_tf train` reach on texts of five kinds, beside Kneser-Ney?",
    "python -m experiments.own_text --minutes=5",
    "1 h, 2 cores",
)


def tables(folder: pathlib.Path) -> dict[str, str]:
    """Returns the tables of the page, by name."""
    return tables_of(Rows(folder).read_all(NEEDS))


def headline(folder: pathlib.Path) -> str:
    """Returns what came out, in a line."""
    parts = []
    for row in Rows(folder).read_all(NEEDS):
        if row["arm"] != "mixture":
            continue
        bits = {
            name: row["scores"][name]["test"]["bits_per_byte"]
            for name in ("n-gram", "mixture")
        }
        gain = 100 * (1 - bits["mixture"] / bits["n-gram"])
        parts.append(f"{row['text']} {gain:.0f} %")
    return (
        "The served mixture takes fewer bits per byte of the test text than "
        f"Kneser-Ney 5: {', '.join(parts)} (one seed)"
    )
