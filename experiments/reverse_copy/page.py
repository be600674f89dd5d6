"""What the page of the study shows, from its rows."""

from __future__ import annotations

import pathlib

from experiments.kit.about import About
from experiments.kit.rows import Rows
from experiments.reverse_copy.report import NEEDS, best_rate
from experiments.reverse_copy.report import tables as tables_of_rows

ABOUT = About(
    "Melis (2023), section 2.3.3, Figure 2.4",
    "Is the Mogrifier better than the LSTM where nothing is like language?",
    "python -m experiments.reverse_copy --preset=small",
    "1.2 h, 1 core",
)


def tables(folder: pathlib.Path) -> dict[str, str]:
    """Returns the tables of the page, by name."""
    return tables_of_rows(Rows(folder).read_all(NEEDS))


def headline(folder: pathlib.Path) -> str:
    """Returns what came out, in a line."""
    rows = Rows(folder).read_all(NEEDS)
    longest = max(row["length"] for row in rows)
    rows = [row for row in rows if row["length"] == longest]
    lstm, mogrifier = (
        best_rate([row for row in rows if row["cell"] == cell])[0]
        for cell in ("lstm", "mogrifier")
    )
    lower = min(row["learning_rate"] for row in rows)
    at_lower = {
        row["cell"]: row["nats_per_token"]["test"]
        for row in rows
        if row["learning_rate"] == lower
    }
    return (
        f"At length {longest} the LSTM has {lstm['nats_per_token']['test']:.3f} nats a "
        f"token, the Mogrifier {mogrifier['nats_per_token']['test']:.3f}: not as in "
        f"the thesis; at the lower learning rate {at_lower['lstm']:.3f} and "
        f"{at_lower['mogrifier']:.3f}"
    )
