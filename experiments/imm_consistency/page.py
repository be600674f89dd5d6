"""What the page of the study shows, from its rows."""

from __future__ import annotations

import pathlib

from experiments.imm_consistency.report import tables as tables_of_parts
from experiments.kit.about import About
from experiments.kit.rows import Rows

_PARTS = ("proposition", "curve", "bias")
ABOUT = About(
    "IMM, Section 5, Proposition 5.1",
    "Do noising and IMM find the truth, given all the data there is?",
    "python -m experiments.imm_consistency --preset=paper",
    "21 s, 2 cores",
)


def tables(folder: pathlib.Path) -> dict[str, str]:
    """Returns the tables of the page, by name."""
    rows = Rows(folder)
    return tables_of_parts({name: rows.read(name) for name in _PARTS})


def headline(folder: pathlib.Path) -> str:
    """Returns what came out, in a line."""
    rows = Rows(folder).read("proposition")["rows"]
    (row,) = [row for row in rows if row["coefficient"] == 1]
    return (
        f"At lambda 1 noising ends {row['kl_of_noising_minimiser']:.2f} nats from the "
        f"truth, IMM {abs(row['kl_of_imm_by_descent']):.0e}"
    )
