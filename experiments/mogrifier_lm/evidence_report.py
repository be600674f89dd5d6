"""Tables of what models do with rare words, after large losses, and with gates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.kit.drawing import table
from experiments.mogrifier_lm.report import grouped, label

Row = dict[str, Any]


def frequency_table(rows: Sequence[Row]) -> str:
    """Returns the mean loss of words by how often they are in the training text.

    Args:
        rows: Of runs on the same text, with their evidence. Seeds are averaged.
    """
    groups = grouped(rows)
    first = rows[0]["evidence"]["by_frequency"]
    lines = []
    for index, words in enumerate(first):
        values = [
            np.mean([row["evidence"]["by_frequency"][index]["nats"] for row in group])
            for group in groups.values()
        ]
        lines.append(
            [
                _range(first, index),
                f"{words['tokens']:,}",
                *(f"{value:.3f}" for value in values),
            ]
        )
    titles = ["occurrences in the training text", "valid tokens", *map(label, groups)]
    return table(titles, lines)


def recovery_table(rows: Sequence[Row]) -> str:
    """Returns the mean loss of a token after one of the largest 10 % and others."""
    lines = []
    for name, group in grouped(rows).items():
        found = {
            key: float(np.mean([row["evidence"]["recovery"][key] for row in group]))
            for key in ("after_large", "after_others")
        }
        large, others = found["after_large"], found["after_others"]
        lines.append(
            [label(name), f"{large:.3f}", f"{others:.3f}", f"{large - others:+.3f}"]
        )
    titles = ["model", "after a large loss", "after others", "difference"]
    return table(titles, lines)


def gates_table(rows: Sequence[Row]) -> str:
    """Returns means and variances of gates, of rows that have them; "" if none has."""
    lines = []
    for name, group in grouped(rows).items():
        group = [row for row in group if "gates" in row["evidence"]]
        for layer in range(len(group[0]["evidence"]["gates"]) if group else 0):
            cells = []
            for gate in ("i", "f", "o"):
                values = [row["evidence"]["gates"][layer][gate] for row in group]
                mean, variance = np.mean(values, axis=0)
                cells.append(f"{mean:.3f} / {variance:.3f}")
            lines.append([label(name), layer + 1, *cells])
    titles = ["model", "layer", "i: mean / variance", "f", "o"]
    return table(titles, lines) if lines else ""


def _range(words: Sequence[dict[str, Any]], index: int) -> str:
    low = words[index]["least"]
    if index + 1 == len(words):
        return f"{low:,} or more"
    high = words[index + 1]["least"] - 1
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
