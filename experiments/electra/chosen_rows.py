"""Which rows of the study are of what."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]
# Of what a detector loses that knows the share of replaced pieces alone: below it, it
# has learnt more than that [CLS] and [SEP], 3 % of the pieces, never are.
_LEARNT = 0.97
# What a row must have to be reported.
NEEDS = ("name", "arm", "generator", "rate", "seed")
ORDER = ("masked", "original", "separate", "disentangled", "decoupled")


def finds_something(row: Row) -> bool:
    """Whether a detector that has not diverged tells replaced pieces from others."""
    share = row["joint"]["replaced"]
    nothing = -share * math.log(share) - (1 - share) * math.log(1 - share)
    return bool(row["joint"]["discriminator"] < _LEARNT * nothing)


def masked_rows(rows: Sequence[Row]) -> list[Row]:
    """Returns the rows of masked language models that are done."""
    return [
        row
        for row in rows
        if row["arm"] == "masked" and "test" in row and "task" not in row
    ]


def detectors(rows: Sequence[Row]) -> list[Row]:
    """Returns the rows of the comparison, in order."""
    return of_stage(rows, "main")


def sweep_rows(rows: Sequence[Row]) -> list[Row]:
    """Returns the rows of the sweep of rates and weights."""
    return of_stage(rows, "sweep")


def of_stage(rows: Sequence[Row], stage: str) -> list[Row]:
    found = [
        row
        for row in rows
        if row["arm"] != "masked" and "curve" in row and row["stage"] == stage
    ]
    return sorted(
        found,
        key=lambda row: (
            ORDER.index(row["arm"]),
            row["generator"],
            row["rate"],
            row["weight"],
            row["seed"],
        ),
    )


def cells(rows: Sequence[Row]) -> dict[tuple[str, int], list[Row]]:
    """Returns rows that have not diverged by arm and layers of the generator.

    Each with `own`: its scores on the text of the first generator trained alone.
    """
    found: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        if "standalone" in row:
            scored = {**row, "own": row["standalone"][primary(row)]}
            found.setdefault((row["arm"], row["generator"]), []).append(scored)
    return found


def primary(row: Row) -> str:
    """Returns the name of the generator whose text the comparison is on."""
    return next(iter(row["standalone"]))


def generators_of(rows: Sequence[Row], masked: Sequence[Row]) -> list[Row]:
    """Returns the masked language models whose text the comparison is on."""
    names = {primary(row) for row in rows if "standalone" in row}
    return [row for row in masked if f"{row['generator']}:{row['seed']}" in names]
