"""Tables of fine-tuning with IMM."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.imm_bert.config import ARMS
from experiments.kit.drawing import table, with_deviation
from experiments.kit.task_tables import task_table

Row = Mapping[str, Any]
# What a row must have to be reported.
NEEDS = ("name", "arm", "task", "seed", "restart", "test", "peers")
_ORDER = ("none", "mlm-tenth", "imm-tenth", "mlm", "imm", "imm-k5")
# Muneeb and Ohannessian (2024), Table 3: BERT-base, mean and error of restarts.
PUBLISHED = {
    ("cola", "none"): "52.1 ± 4",
    ("cola", "mlm"): "55.0 ± 3",
    ("cola", "imm-k5"): "60.0 ± 1",
    ("mrpc", "none"): "88.9 ± 2",
    ("mrpc", "mlm"): "89 ± 1",
    ("mrpc", "imm-k5"): "90 ± 1",
    ("qnli", "none"): "90.5 ± 2",
    ("qnli", "mlm"): "91.0 ± 2",
    ("qnli", "imm-k5"): "93.5 ± 1",
    ("rte", "none"): "66 ± 2",
    ("rte", "mlm"): "68 ± 2",
    ("rte", "imm-k5"): "71 ± 1",
}


def report(rows: Sequence[Row], folder: pathlib.Path) -> str:
    """Returns the tables."""
    return "\n\n".join(tables(rows).values())


def tables(rows: Sequence[Row]) -> dict[str, str]:
    """Returns the tables of what there is, by name."""
    scored = scored_rows(rows)
    projected = [row for row in rows if "hours" in row]
    found = {}
    if scored:
        found["tasks"] = task_table(
            scored,
            order=_ORDER,
            bases=("none", "mlm-tenth", "mlm"),
            published=PUBLISHED,
        )
    of_checkpoints = [row for row in rows if row.get("checkpoint")]
    if of_checkpoints:
        found["checkpoints"] = task_table(
            of_checkpoints, order=_ORDER, bases=("none", "mlm"), published=PUBLISHED
        )
    if any(map(_matches, scored)):
        found["matched"] = matched(scored)
    if projected:
        found["projected"] = projections(projected)
    return found


def matched(rows: Sequence[Row]) -> str:
    """Returns what IMM had to match: predictions, and contexts of each."""
    own = [row for row in rows if _matches(row)]
    lines = []
    for task, arm in dict.fromkeys((row["task"], row["arm"]) for row in own):
        of_cell = [row for row in own if (row["task"], row["arm"]) == (task, arm)]
        lines.append(
            (
                task,
                arm,
                len(of_cell),
                with_deviation([100 * row["imm_coverage"] for row in of_cell], 1),
                with_deviation([row["imm_count"] for row in of_cell], 1),
            )
        )
    titles = ("task", "arm", "runs", "predictions matched, %", "contexts of one")
    return table(titles, lines)


def _matches(row: Row) -> bool:
    return "contexts" in ARMS[row["arm"]]


def scored_rows(rows: Sequence[Row]) -> list[Row]:
    """Returns the rows of encoders of ours that were fine-tuned."""
    return [row for row in rows if "hours" not in row and not row.get("checkpoint")]


def projections(rows: Sequence[Row]) -> str:
    """Returns seconds of a step at the paper's size, and hours of its tasks."""
    epochs, lengths = rows[0]["epochs"], [*rows[0]["step_seconds"]]
    lines = [
        (
            row["arm"],
            f"{row['layers']} x {row['width']}",
            *(f"{row['step_seconds'][length]:.1f}" for length in lengths),
            *(f"{row['hours'][name]:,.1f}" for name in epochs),
        )
        for row in rows
    ]
    titles = (
        "arm",
        "layers x width",
        *(f"seconds of a step, {length} pieces a row" for length in lengths),
        *(f"hours of {name}, {number} epochs" for name, number in epochs.items()),
    )
    return table(titles, lines)
