"""The table of the study."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments.kit.drawing import table
from experiments.own_text.texts import NAMES

NEEDS = ("text", "arm", "scores.model.test.bits_per_byte", "plan.width", "bytes")


def tables_of(rows: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Returns the tables: what was reached, and what was chosen."""
    found = {(row["text"], row["arm"]): row for row in rows}
    names = [name for name in NAMES if any(name == text for text, _ in found)]
    reached, chosen = [], []
    for name in names:
        mixed, alone = found.get((name, "mixture")), found.get((name, "alone"))
        either = mixed or alone
        assert either is not None
        reached.append(
            (
                name,
                _bits(either, "n-gram"),
                _bits(mixed, "model"),
                _bits(mixed, "mixture"),
                _bits(mixed, "dynamic evaluation"),
                _bits(alone, "model"),
            )
        )
        plan = either["plan"]
        chosen.append(
            (
                name,
                f"{either['bytes'] / 1000:,.0f}",
                f"{plan['vocabulary_size']:,} {plan['rule']}",
                *(
                    "" if row is None else f"{row['plan']['width']}"
                    for row in (mixed, alone)
                ),
                *(
                    "" if row is None else f"{row['training']['epochs']}"
                    for row in (mixed, alone)
                ),
                "" if mixed is None else f"{mixed['saved_model_megabytes']:.1f}",
            )
        )
    return {
        "reached": table(
            (
                "text",
                "n-gram",
                "model",
                "mixture (served)",
                "model, dynamic evaluation",
                "one small model, IMM",
            ),
            reached,
        ),
        "chosen": table(
            (
                "text",
                "kB",
                "vocabulary",
                "width",
                "width, alone",
                "epochs",
                "epochs, alone",
                "SavedModel, MB",
            ),
            chosen,
        ),
    }


def _bits(row: dict[str, Any] | None, model: str) -> str:
    if row is None or model not in row["scores"]:
        return ""
    return f"{row['scores'][model]['test']['bits_per_byte']:.3f}"
