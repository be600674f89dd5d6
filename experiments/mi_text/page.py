"""What the page of the study shows, from its rows."""

from __future__ import annotations

import pathlib

from experiments.kit.about import About
from experiments.kit.rows import Rows
from experiments.mi_text.config import PARTS
from experiments.mi_text.report import tables as tables_of_parts
from experiments.mi_text.report import with_error

ABOUT = About(
    "BMI, Table 2 (real text)",
    "How coherent is real text over long ranges, and what does the estimate depend on?",
    "python -m experiments.mi_text --preset=small --data_dir=DATA",
    "7.5 h, 1 core",
)


def tables(folder: pathlib.Path) -> dict[str, str]:
    """Returns the tables of the page, by name."""
    rows = Rows(folder)
    return tables_of_parts({name: rows.read(name) for name in PARTS if name in rows})


def headline(folder: pathlib.Path) -> str:
    """Returns what came out, in a line."""
    rows = Rows(folder)
    found = [
        f"{row['text']} {with_error(row['mine'])}" for row in rows.read("real")["rows"]
    ]
    shuffled = [
        row["mine"]["mean"]
        for row in rows.read("controls")["rows"]
        if row["shuffled_order"] == "words"
    ]
    return (
        f"Whole corpora, 10 tokens apart: {', '.join(found)} nats; words in random "
        f"order {min(shuffled):.3f} to {max(shuffled):.3f}"
    )
