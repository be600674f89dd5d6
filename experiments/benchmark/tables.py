"""Tables of the benchmark's page: lines by what they are about, and chosen ones."""

from __future__ import annotations

import re
from collections.abc import Mapping

from experiments.benchmark.report import conditions, lines_of, table_of_lines
from experiments.benchmark.timing import Line
from experiments.kit.drawing import table
from experiments.kit.rows import Row
from experiments.kit.timing import duration

# Tables, and the rows in them but for their widths.
TOPICS = {
    "lstm": ("lstm",),
    "cells": ("cells", "ratios"),
    "averages": ("averages",),
    "imm": ("imm", "sampler", "memory"),
    "floors": ("floors",),
    "reading": ("reading",),
    "kneser_ney": ("kneser-ney", "large-counts"),
    "serving": ("serving",),
    "bmi": ("awd", "mixture-memory", "information"),
    "encoders": ("encoders", "finetuning"),
    "distillation": ("distillation", "store", "losses", "language-distillation"),
    "seeds": (
        *("seed-matching", "seed-linear", "seed-step", "seed-serving", "seed-tool"),
    ),
    "latents": ("latents", "latent-memory"),
    "small_tasks": ("grid", "logistic"),
}
# What a reader wants to know first: a row, and parts of a line's text and its peer's.
TELLING = (
    ("lstm-200", "LSTM", "torch.nn.LSTM:"),
    ("lstm-200", "LSTM", "keras.layers.LSTM:"),
    ("cells-650", "Mogrifier", "keras.layers.RNN:"),
    ("ratios-650", "Mogrifier", "our LSTM:"),
    ("averages", "fit() with the callback of 2TA", "without it:"),
    ("imm-200", "min_count 1", "plain step:"),
    ("sampler-200", "k = 10 ", "plain step:"),
    ("memory", "crosstalk gradient, k = 20", "k = 1:"),
    ("latents", "VIMCO", "PyTorch:"),
    ("grid", "Figure 3", "authors' script"),
)
_LIMIT = re.compile(r"at most ([\d.,]+)(?: (\w+))?")
# Sizes of units; seconds, and bytes.
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_UNITS |= {"MiB": 2.0**20, "GiB": 2.0**30}


def page_tables(rows: Mapping[str, Row]) -> dict[str, str]:
    """Returns the tables of the page, by name."""
    chosen = [find_line(rows, *wanted) for wanted in TELLING]
    by_topic = {}
    for topic, families in TOPICS.items():
        own = [row for name, row in rows.items() if family(name) in families]
        if own:
            by_topic[topic] = table_of_lines(lines_of(own))
    missed = [line for line in lines_of(rows.values()) if misses(line)]
    return {
        "telling": table_of_lines(line for line in chosen if line is not None),
        "conditions": conditions(rows),
        **by_topic,
        "missed": table_of_lines(missed),
        "cost": _cost(rows),
    }


def family(name: str) -> str:
    """Returns the name of a row without its width."""
    return re.sub(r"-\d+$", "", name)


def find_line(rows: Mapping[str, Row], name: str, what: str, peer: str) -> Line | None:
    """Returns the first line of a row by parts of its text; None if there is none.

    Args:
        rows: Some of them.
        name: Of the row.
        what: Is in what the line says was measured.
        peer: With what the peer's cell begins.
    """
    if name not in rows:
        return None
    for line in lines_of([rows[name]]):
        if what in line.what and line.peer.startswith(peer):
            return line
    return None


def ratio_of(line: Line) -> float:
    """Returns the number of a line's ratio."""
    return _number(line.ratio.split()[0])


def misses(line: Line) -> bool:
    """Whether a line misses its target, a limit of the ratio or of ours with a unit."""
    limit = _LIMIT.fullmatch(line.target)
    if limit is None:
        return False
    most = _number(limit[1])
    if limit[2]:
        number, unit = line.ours.split()
        return _number(number) * _UNITS[unit] > most * _UNITS[limit[2]]
    return ratio_of(line) > most


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def _cost(rows: Mapping[str, Row]) -> str:
    lines = [(name, f"{row['seconds']:.0f} s") for name, row in rows.items()]
    total = duration(sum(row["seconds"] for row in rows.values()))
    text = table(("row", "took"), [*lines, ("all", total)])
    points = [p for row in rows.values() for p in row["numbers"].get("points", ())]
    if not points:
        return text
    peak = max(point["peak_mib"] for point in points)
    return f"{text}\n\nThe largest process whose memory was measured: {peak:,.0f} MiB."
