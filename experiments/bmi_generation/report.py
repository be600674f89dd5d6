"""The tables of what models say."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.kit.drawing import distinct, table, with_deviation
from experiments.kit.paired import less

Row = Mapping[str, Any]
_ORDER = ("none", "base", "full", "real", "unigram")
# What a row must have to be reported.
NEEDS = ("name", "arm", "seed", "information", "reverse")
# Cao and Xu (2019), Tables 1 and 2, Penn Treebank: MINE in nats, reverse perplexity of
# validation and test text by six million tokens; after finetuning.
_PUBLISHED_GAP = 10
PUBLISHED = {
    "none": ("0.25 ± 0.03", "80.29 / 75.51"),
    "base": ("0.47 ± 0.03", "78.04 / 73.35"),
    "full": ("0.48 ± 0.03", "75.81 / 71.81"),
    "real": ("1.18 ± 0.08", ""),
}


def report(rows: Sequence[Row], folder: pathlib.Path) -> str:
    """Returns the tables."""
    return "\n\n".join(tables(rows).values())


def tables(rows: Sequence[Row]) -> dict[str, str]:
    """Returns the tables, by name."""
    return {
        "information": information(rows),
        "reverse": reverse(rows),
        "own": own_information(rows),
    }


def by_arms(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Returns rows by arm, each in the order of seeds."""
    return {
        arm: sorted((r for r in rows if r["arm"] == arm), key=lambda r: r["seed"])
        for arm in _ORDER
        if any(row["arm"] == arm for row in rows)
    }


def at_gap(rows: Sequence[Row], gap: int) -> list[Row]:
    """Returns rows with the estimates of one gap as `mine`, `nwj` and `shuffled`."""
    return [
        {**row, **each}
        for row in rows
        for each in row["information"]
        if each["gap"] == gap
    ]


def information(rows: Sequence[Row]) -> str:
    """Returns the table of mutual information by a critic."""
    lines = []
    gaps = distinct(each["gap"] for row in rows for each in row["information"])
    for gap in gaps:
        arms = by_arms(at_gap(rows, gap))
        for arm, own in arms.items():
            folds = np.mean([row["mine"]["standard_error"] for row in own])
            lines.append(
                (
                    gap,
                    arm,
                    with_deviation([row["mine"]["mean"] for row in own], 3),
                    f"{folds:.3f}",
                    *(
                        less(b, arms, own, "mine", "mean", digits=3)
                        for b in ("none", "base")
                    ),
                    with_deviation([row["nwj"]["mean"] for row in own], 3),
                    with_deviation([row["shuffled"]["mean"] for row in own], 3),
                    PUBLISHED.get(arm, ("", ""))[0] if gap == _PUBLISHED_GAP else "",
                )
            )
    titles = (
        "gap",
        "text",
        "MINE, nats",
        "standard error of folds",
        "less `none`, ± 2 standard errors",
        "less `base`",
        "NWJ",
        "half a block apart",
        "the paper",
    )
    return table(titles, lines, (0, 1))


def reverse(rows: Sequence[Row]) -> str:
    """Returns the table of reverse perplexity."""
    arms = by_arms(rows)
    lines = []
    for arm, own in arms.items():
        lines.append(
            (
                arm,
                with_deviation([row["reverse"]["valid"] for row in own], 1),
                with_deviation([row["reverse"]["test"] for row in own], 1),
                *(
                    less(b, arms, own, "reverse", "test", digits=1)
                    for b in ("none", "base")
                ),
                with_deviation([row["distinct_words"] for row in own], 0),
                PUBLISHED.get(arm, ("", ""))[1],
            )
        )
    titles = (
        "text",
        "valid",
        "test",
        "less `none`, ± 2 standard errors",
        "less `base`",
        "different words",
        "the paper, valid / test",
    )
    return table(titles, lines)


def own_information(rows: Sequence[Row]) -> str:
    """Returns the table of models' own information, without a critic."""
    spoken = [
        {**row, "own": _own(row["sandwich"])} for row in rows if row.get("sandwich")
    ]
    arms = by_arms(spoken)
    names = ("lower", "upper", "conditional_entropy", "entropy")
    lines = []
    for arm, own in arms.items():
        lines.append(
            (
                arm,
                *(with_deviation([row["own"][name] for row in own]) for name in names),
                *(
                    less("none", arms, own, "own", name)
                    for name in ("lower", "conditional_entropy", "entropy")
                ),
            )
        )
    titles = (
        "model",
        "I, lower",
        "upper",
        "H(Y given X)",
        "H(Y), between the bounds",
        "I, lower, less `none`, ± 2 standard errors",
        "H(Y given X), less `none`",
        "H(Y), less `none`",
    )
    return table(titles, lines)


def _own(bounds: Mapping[str, float]) -> dict[str, float]:
    """Returns the bounds with H(Y) = H(Y | X) + I, I between them."""
    between = (bounds["lower"] + bounds["upper"]) / 2
    return {**bounds, "entropy": bounds["conditional_entropy"] + between}
