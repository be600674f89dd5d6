"""Tables of a transformer that learns from seed words."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.kit.drawing import distinct, table, with_deviation
from experiments.kit.seed_procedure import told_difference
from experiments.kit.seed_published import TABLE_3_2
from experiments.seed_transformer.config import ARMS, MAIN, REWRITTEN

Row = Mapping[str, Any]
_BASE = "vanilla"


def report(rows: Sequence[Row], folder: pathlib.Path) -> str:
    """Returns the tables."""
    return "\n\n".join(tables(rows).values())


def tables(rows: Sequence[Row]) -> dict[str, str]:
    """Returns the tables of what there is, by name."""
    found = {}
    projected = [row for row in rows if row["arm"] == "projected"]
    rows = [row for row in rows if row["arm"] != "projected"]
    main = [row for row in rows if row["arm"] in (*MAIN, *REWRITTEN)]
    others = [row for row in rows if row["arm"] not in (*MAIN, *REWRITTEN)]
    if main:
        found["arms"] = arms(main)
    if others:
        # Beside what they are to replace, of the same seeds.
        seeds = {row["seed"] for row in others}
        found["dropouts"] = arms([row for row in main if row["seed"] in seeds] + others)
    if projected:
        found["projected"] = projections(projected[-1])
    return found


def projections(row: Row) -> str:
    """Returns hours of each arm at BERT-base's size."""
    arms = list(next(iter(row["hours"].values())))
    lines = [
        (name, *(f"{hours[arm]:,.0f}" for arm in arms))
        for name, hours in row["hours"].items()
    ]
    return table(("documents of", *(f"{arm}, hours" for arm in arms)), lines)


def cells(rows: Sequence[Row]) -> list[tuple[str, str, list[Row]]]:
    """Returns the rows of each set and arm, in their order."""
    return [
        (name, arm, own)
        for name in distinct(row["set"] for row in rows)
        for arm in ARMS
        if (own := [r for r in rows if r["set"] == name and r["arm"] == arm])
    ]


def arms(rows: Sequence[Row]) -> str:
    """Returns what each arm learnt from, and how good it is."""
    every = {(name, arm): own for name, arm, own in cells(rows)}
    lines = []
    for (name, arm), own in every.items():
        lines.append(
            (
                name,
                arm,
                len(own),
                with_deviation([100 * row["selected_noise"] for row in own], 1),
                with_deviation([row["judged"][0]["micro"] for row in own], 1),
                with_deviation([row["judged"][-1]["micro"] for row in own], 1),
                f"{np.mean([row['judged'][-1]['macro'] for row in own]):.1f}",
                with_deviation([row["held_out"]["micro"] for row in own], 1),
                *(
                    ""
                    if arm == _BASE
                    else told_difference(own, every.get((name, _BASE)), bits)
                    for bits in ("right", "held_out_right")
                ),
                TABLE_3_2.get(name, {}).get(arm, ""),
            )
        )
    titles = (
        *("documents of", "arm", "seeds", "noise of what is learnt from, %"),
        *("micro F1, first", "last", "macro F1, last", "held out, micro"),
        f"last, less `{_BASE}`, ± 2 standard errors",
        f"held out, less `{_BASE}`",
        "the thesis, BERT-base, micro / macro",
    )
    return table(titles, lines, (0, 1))
