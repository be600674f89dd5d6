"""Which part of a model each of its variables belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# Of what several parts have.
SHARED = "shared"


def part_owners(parts: Mapping[str, Sequence[Any]]) -> dict[int, str]:
    """Returns the part of each trainable variable, by the variable's `id`.

    Args:
        parts: Layers and variables, by the part's name; what two parts have is of the
            part "shared".
    """
    owners: dict[int, str] = {}
    for part, members in parts.items():
        for member in members:
            for variable in getattr(member, "trainable_variables", [member]):
                if owners.setdefault(id(variable), part) != part:
                    owners[id(variable)] = SHARED
    return owners
