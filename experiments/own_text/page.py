"""What the page of the study shows, from its rows."""

from __future__ import annotations

import pathlib

from experiments.kit.about import About
from experiments.kit.rows import Rows
from experiments.own_text.report import NEEDS, imm_gains, tables_of

ABOUT = About(
    "no table of a document",
    "What does `rlm_tf train` reach on texts of five kinds, beside Kneser-Ney?",
    "python -m experiments.own_text --minutes=5",
    "2 h, 2 cores",
)


def tables(folder: pathlib.Path) -> dict[str, str]:
    """Returns the tables of the page, by name."""
    return tables_of(Rows(folder).read_all(NEEDS))


def headline(folder: pathlib.Path) -> str:
    """Returns what came out, in a line."""
    rows = Rows(folder).read_all(NEEDS)
    parts = []
    for row in rows:
        if row["arm"] != "mixture":
            continue
        bits = {
            name: row["scores"][name]["test"]["bits_per_byte"]
            for name in ("n-gram", "mixture")
        }
        gain = 100 * (1 - bits["mixture"] / bits["n-gram"])
        parts.append(f"{row['text']} {gain:.0f} %")
    gains = imm_gains(rows)
    clear = [name for name, (gain, error) in gains.items() if gain > 2 * error]
    behind = [name for name, (gain, error) in gains.items() if gain < -2 * error]
    return (
        "The served mixture takes fewer bits per byte of the test text than "
        f"Kneser-Ney 5: {', '.join(parts)} (one seed); one small model is better with "
        f"IMM by more than two standard errors on {len(clear)} of {len(gains)} texts, "
        f"worse on {len(behind)}"
    )
