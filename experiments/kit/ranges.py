"""Where hyper-parameters are looked for."""

from __future__ import annotations

from typing import NamedTuple


class Range(NamedTuple):
    """Where a hyper-parameter is looked for.

    Attributes:
        low: The least value.
        high: The largest value.
        log: Whether on a logarithmic scale.
        integer: Whether it is a whole number.
    """

    low: float
    high: float
    log: bool = False
    integer: bool = False


Space = dict[str, Range]
