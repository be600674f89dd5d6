"""The tables of the study."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.kit.drawing import table, with_deviation
from experiments.own_text.texts import NAMES

NEEDS = ("text", "arm", "seed", "scores.model.test.bits_per_byte", "plan", "bytes")

Row = dict[str, Any]


def tables_of(rows: Sequence[Row]) -> dict[str, str]:
    """Returns the tables: what was reached and chosen, and what IMM is worth."""
    mixed = [
        row
        for name in NAMES
        for row in rows
        if (row["text"], row["arm"]) == (name, "mixture")
    ]
    return {
        "reached": _reached(mixed),
        "chosen": _chosen(mixed),
        "imm": _imm(rows),
    }


def imm_gains(rows: Sequence[Row]) -> dict[str, tuple[float, float]]:
    """Returns what IMM takes off the bits per byte of each test text.

    Returns:
        The mean over seeds of the difference to the model without, and its standard
        error; for texts with at least two seeds of both.
    """
    gains = {}
    for name in NAMES:
        none, imm = (_bits_by_seed(rows, name, arm, "model") for arm in ("none", "imm"))
        both = [none[seed] - imm[seed] for seed in sorted(none) if seed in imm]
        if len(both) > 1:
            error = np.std(both, ddof=1) / np.sqrt(len(both))
            gains[name] = float(np.mean(both)), float(error)
    return gains


def _reached(rows: Sequence[Row]) -> str:
    models = ("n-gram", "model", "mixture", "dynamic evaluation")
    return table(
        (
            "text",
            "n-gram",
            "model",
            "mixture (served)",
            "model, dynamic evaluation",
        ),
        [(row["text"], *(_shown_bits(row, model) for model in models)) for row in rows],
    )


def _chosen(rows: Sequence[Row]) -> str:
    return table(
        ("text", "kB", "vocabulary", "width", "epochs", "SavedModel, MB"),
        [
            (
                row["text"],
                f"{row['bytes'] / 1000:,.0f}",
                f"{row['plan']['vocabulary_size']:,} {row['plan']['rule']}",
                f"{row['plan']['width']}",
                f"{row['training']['epochs']}",
                f"{row['saved_model_megabytes']:.1f}",
            )
            for row in rows
        ],
    )


def _imm(rows: Sequence[Row]) -> str:
    gains, lines = imm_gains(rows), []
    for name in NAMES:
        if name not in gains:
            continue
        bits = [
            list(_bits_by_seed(rows, name, arm, model).values())
            for model in ("model", "mixture")
            for arm in ("none", "imm")
        ]
        first = next(row for row in rows if (row["text"], row["arm"]) == (name, "imm"))
        gain, error = gains[name]
        lines.append(
            (
                name,
                f"{first['bytes'] / 1000:,.0f}",
                f"{len(bits[1])}",
                _shown_bits(first, "n-gram"),
                *(with_deviation(values, 3) for values in bits[:2]),
                f"{gain:.3f} ± {error:.3f}",
                *(with_deviation(values, 3) for values in bits[2:]),
            )
        )
    return table(
        (
            "text",
            "kB",
            "seeds",
            "n-gram",
            "model",
            "model with IMM",
            "gain ± standard error",
            "mixture",
            "mixture with IMM",
        ),
        lines,
    )


def _bits_by_seed(
    rows: Sequence[Row], name: str, arm: str, model: str
) -> dict[int, float]:
    return {
        row["seed"]: row["scores"][model]["test"]["bits_per_byte"]
        for row in rows
        if (row["text"], row["arm"]) == (name, arm)
    }


def _shown_bits(row: Row, model: str) -> str:
    if model not in row["scores"]:
        return ""
    return f"{row['scores'][model]['test']['bits_per_byte']:.3f}"
