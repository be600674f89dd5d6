"""Tables of fine-tuning with IMM."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.kit.drawing import distinct, table, with_deviation
from experiments.kit.paired import less

Row = Mapping[str, Any]
# What a row must have to be reported.
NEEDS = ("name", "arm", "task", "seed", "restart", "test", "peers")
_ORDER = ("none", "mlm", "imm", "imm-k5")
# Muneeb and Ohannessian (2024), Table 3: BERT-base, mean and error of restarts.
PUBLISHED = {
    ("cola", "none"): "52.1 ± 4",
    ("cola", "mlm"): "55.0 ± 3",
    ("cola", "imm-k5"): "60.0 ± 1",
    ("mrpc", "none"): "88.9 ± 2",
    ("mrpc", "mlm"): "89 ± 1",
    ("mrpc", "imm-k5"): "90 ± 1",
    ("rte", "none"): "66 ± 2",
    ("rte", "mlm"): "68 ± 2",
    ("rte", "imm-k5"): "71 ± 1",
}


def report(rows: Sequence[Row], folder: pathlib.Path) -> str:
    """Returns the tables."""
    return "\n\n".join(tables(rows).values())


def tables(rows: Sequence[Row]) -> dict[str, str]:
    """Returns the tables of what there is, by name."""
    projected = [row for row in rows if "hours" in row]
    found = {}
    if len(projected) < len(rows):
        found["tasks"] = tasks([row for row in rows if "hours" not in row])
    if projected:
        found["projected"] = projections(projected)
    return found


def projections(rows: Sequence[Row]) -> str:
    """Returns seconds of a step at the paper's size, and hours of its tasks."""
    names = [*rows[0]["hours"]]
    lines = [
        (
            row["arm"],
            f"{row['layers']} x {row['width']}",
            f"{row['step_seconds']:.1f}",
            *(f"{row['hours'][name]:,.1f}" for name in names),
        )
        for row in rows
    ]
    titles = ("arm", "layers x width", "seconds of a step")
    return table((*titles, *(f"hours of {name}" for name in names)), lines)


def tasks(rows: Sequence[Row]) -> str:
    """Returns the table of scores, 100 times, restarts of a seed averaged."""
    lines: list[tuple[Any, ...]] = []
    for task in distinct(row["task"] for row in rows):
        own = [row for row in rows if row["task"] == task]
        metric = next(iter(own[0]["test"]))
        arms = {
            arm: _by_seeds([row for row in own if row["arm"] == arm], metric)
            for arm in _ORDER
            if any(row["arm"] == arm for row in own)
        }
        for arm, found in arms.items():
            lines.append(
                (
                    task,
                    metric,
                    arm,
                    len(found),
                    with_deviation([row["score"] for row in found], 1),
                    *(
                        less(base, arms, found, "score", digits=1)
                        for base in ("none", "mlm")
                    ),
                    with_deviation([row["seconds"] for row in found], 0),
                    PUBLISHED.get((task, arm), ""),
                )
            )
        for peer, title in (("tfidf", "tf-idf, linear"), ("majority", "majority")):
            scores = [
                100 * row["peers"][peer][metric]
                for row in own
                if row["arm"] == _ORDER[0] and row["restart"] == 0
            ]
            if scores:
                shown = with_deviation(scores, 1)
                lines.append((task, metric, title, len(scores), shown, "", "", "", ""))
    titles = (
        "task",
        "metric",
        "arm",
        "seeds",
        "test",
        "less `none`, ± 2 standard errors",
        "less `mlm`",
        "seconds",
        "the paper",
    )
    return table(titles, lines, (0, 1, 2))


def _by_seeds(rows: Sequence[Row], metric: str) -> list[Row]:
    """Returns a row a seed, with the mean score of its restarts."""
    found: list[Row] = []
    for seed in sorted({row["seed"] for row in rows}):
        own = [row for row in rows if row["seed"] == seed]
        found.append(
            {
                "seed": seed,
                "score": 100 * float(np.mean([row["test"][metric] for row in own])),
                "seconds": float(np.mean([row["seconds"] for row in own])),
            }
        )
    return found
