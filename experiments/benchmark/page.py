"""What the page of the benchmark shows, from its rows."""

from __future__ import annotations

import pathlib

from experiments.benchmark.stored import read_rows
from experiments.benchmark.tables import find_line, page_tables, ratio_of
from experiments.kit.about import About
from experiments.kit.rows import Rows

ABOUT = About(
    "no table of a document",
    "What do steps cost in time and memory, beside Keras, PyTorch, NLTK and authors?",
    "python -m experiments.benchmark --preset=small --data_dir=DATA",
    "40 min, 2 cores",
)


def tables(folder: pathlib.Path) -> dict[str, str]:
    """Returns the tables of the page, by name."""
    return page_tables(read_rows(Rows(folder)))


def headline(folder: pathlib.Path) -> str:
    """Returns what came out, in a line."""
    rows = read_rows(Rows(folder))

    def of_both_widths(row: str, what: str, peer: str) -> str:
        found = [find_line(rows, f"{row}-{width}", what, peer) for width in (200, 650)]
        low, high = sorted(ratio_of(line) for line in found if line is not None)
        return f"{low:.2f} to {high:.2f}"

    torch = of_both_widths("lstm", "LSTM", "torch.nn.LSTM:")
    compiled = of_both_widths("lstm", "LSTM", "torch.nn.LSTM, torch.compile:")
    keras = of_both_widths("lstm", "LSTM", "keras.layers.LSTM:")
    imm = of_both_widths("imm", "min_count 1", "plain step:")
    frequent = of_both_widths("imm", "one backward pass", "plain step:")
    return (
        f"An LSTM step takes {torch} of PyTorch's time, {compiled} of that under "
        f"torch.compile, {keras} of Keras'; with IMM in batch {imm} of the plain "
        f"step's, {frequent} if contexts that come fewer than five times in the batch "
        "are left out"
    )
