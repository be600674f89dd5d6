"""The tables of what models say."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.kit.drawing import distinct, table, with_deviation
from experiments.kit.paired import paired_difference

Row = Mapping[str, Any]
# What a row must have to be reported.
NEEDS = ("name", "arm", "seed", "mine", "reverse")
# Cao and Xu (2019), Tables 1 and 2, Penn Treebank: MINE in nats, reverse perplexity of
# the test text by six million tokens; after finetuning.
PUBLISHED = {
    "none": ("0.25 ± 0.03", "75.51"),
    "base": ("0.47 ± 0.03", "73.35"),
    "full": ("0.48 ± 0.03", "71.81"),
    "real": ("1.18 ± 0.08", ""),
}


def report(rows: Sequence[Row], folder: pathlib.Path) -> str:
    """Returns the tables."""
    return "\n\n".join(tables(rows).values())


def tables(rows: Sequence[Row]) -> dict[str, str]:
    """Returns the tables, by name."""
    return {"information": information(rows), "own": own_information(rows)}


def _arms(rows: Sequence[Row]) -> dict[str, list[Row]]:
    return {
        arm: sorted((r for r in rows if r["arm"] == arm), key=lambda r: r["seed"])
        for arm in distinct(row["arm"] for row in rows)
    }


def information(rows: Sequence[Row]) -> str:
    """Returns the table of information and reverse perplexity."""
    arms = _arms(rows)
    plain = {row["seed"]: row["mine"]["mean"] for row in arms.get("none", [])}
    lines = []
    for arm, own in arms.items():
        values = [row["mine"]["mean"] for row in own]
        pairs = [
            (row["mine"]["mean"], plain[row["seed"]])
            for row in own
            if row["seed"] in plain and arm != "none"
        ]
        folds = np.mean([row["mine"]["standard_error"] for row in own])
        lines.append(
            (
                arm,
                with_deviation(values, 3),
                f"{folds:.3f}",
                paired_difference(pairs, 3),
                with_deviation([row["nwj"]["mean"] for row in own], 3),
                with_deviation([row["shuffled"]["mean"] for row in own], 3),
                with_deviation([row["reverse"]["valid"] for row in own], 1),
                with_deviation([row["reverse"]["test"] for row in own], 1),
                *PUBLISHED.get(arm, ("", "")),
            )
        )
    titles = (
        "text",
        "MINE, nats",
        "standard error of folds",
        "less `none`, ± 2 standard errors",
        "NWJ",
        "re-paired",
        "reverse perplexity, valid",
        "test",
        "paper: MINE",
        "paper: reverse, test",
    )
    return table(titles, lines)


def own_information(rows: Sequence[Row]) -> str:
    """Returns the table of models' own information, without a critic."""
    lines = []
    for arm, own in _arms(rows).items():
        bounds = [row["sandwich"] for row in own if row.get("sandwich")]
        if not bounds:
            continue
        lower, upper, conditional = (
            [bound[name] for bound in bounds]
            for name in ("lower", "upper", "conditional_entropy")
        )
        # H(Y) = H(Y | X) + I, between the bounds.
        entropy = [
            h + (a + b) / 2 for h, a, b in zip(conditional, lower, upper, strict=True)
        ]
        lines.append(
            (
                arm,
                *(with_deviation(v) for v in (lower, upper, conditional, entropy)),
            )
        )
    titles = ("model", "I, lower", "upper", "H(Y given X)", "H(Y), between the bounds")
    return table(titles, lines)
