"""What the page of the study shows, from its rows."""

from __future__ import annotations

import pathlib

from experiments.kit.about import About
from experiments.kit.rows import Rows
from experiments.mi_text.config import PARTS
from experiments.mi_text.report import PUBLISHED, with_error
from experiments.mi_text.report import tables as tables_of_parts

ABOUT = About(
    "BMI, section 4.2, Table 2 (real text)",
    "How much do far segments of real text share, and what decides the estimate?",
    "python -m experiments.mi_text --preset=small --data_dir=DATA",
    "1.5 h, 1 core",
)


def tables(folder: pathlib.Path) -> dict[str, str]:
    """Returns the tables of the page, by name."""
    rows = Rows(folder)
    return tables_of_parts({name: rows.read(name) for name in PARTS})


def headline(folder: pathlib.Path) -> str:
    """Returns what came out, in a line."""
    rows = Rows(folder)
    whole = ", ".join(
        f"{row['text']} {with_error(row['mine'])} (the paper: {PUBLISHED[row['text']]})"
        for row in rows.read("real")["rows"]
    )
    lengths = [row for row in rows.read("lengths")["rows"] if row["text"] == "ptb"]
    by_length = ", ".join(
        f"{row['mine']['mean']:.2f} of {row['tokens']:,}" for row in lengths
    )
    return f"MINE of whole texts, nats: {whole}; of ptb, by tokens: {by_length}"
