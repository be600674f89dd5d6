"""Masked rows of a text, as all encoders of the benchmark read them."""

from __future__ import annotations

from typing import Any, NamedTuple


class Batch(NamedTuple):
    """What all models read.

    Attributes:
        tokens: int32 `[B, T]`.
        shown: The same, some masked.
        positions: int32 `[B, T]`, 1 where they are.
        places: Columns of the masked ones, int32 `[B, M]`; all rows have M.
    """

    tokens: Any
    shown: Any
    positions: Any
    places: Any
