"""Differences of runs that share a seed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Row = Mapping[str, Any]
# Fewest pairs whose difference may be said to be there.
LEAST_PAIRS = 3


def mean_and_error(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Returns the mean of first less second, and its standard error; nan for one."""
    differences = [first - second for first, second in pairs]
    if len(differences) < 2:
        return float(np.mean(differences)) if differences else math.nan, math.nan
    error = float(np.std(differences, ddof=1)) / math.sqrt(len(differences))
    return float(np.mean(differences)), error


def paired_difference(pairs: Sequence[tuple[float, float]], digits: int = 2) -> str:
    """Returns `mean ± two standard errors`, in bold where that is not about zero.

    Of two pairs nothing is bold: their error is a guess from one number.
    """
    mean, error = mean_and_error(pairs)
    if math.isnan(mean):
        return ""
    if math.isnan(error):
        return f"{mean:+.{digits}f}"
    text = f"{mean:+.{digits}f} ± {2 * error:.{digits}f}"
    told = len(pairs) >= LEAST_PAIRS and abs(mean) > 2 * error
    return f"**{text}**" if told else text


def at(row: Row, place: Sequence[str]) -> float:
    """Returns a number of a row.

    Args:
        row: The row.
        place: Where it is, from outside in.
    """
    value: Any = row
    for name in place:
        value = value[name]
    return float(value)


def less(
    base: str,
    groups: Mapping[str, Sequence[Row]],
    own: Sequence[Row],
    *place: str,
    digits: int = 2,
) -> str:
    """Returns how far a number of rows is above that of another group's, seed by seed.

    Seeds count that both have; of one there is no error, and of several beside it the
    number is not the difference of the means that a table shows.

    Args:
        base: Name of the other group; if there is none, or these are it, nothing is
            said.
        groups: Rows by name.
        own: Of one of the groups.
        *place: Where in a row the number is, from outside in.
        digits: Behind the point.
    """

    if own is groups.get(base):
        return ""
    known = {row["seed"]: at(row, place) for row in groups.get(base, [])}
    pairs = [
        (at(row, place), known[row["seed"]]) for row in own if row["seed"] in known
    ]
    return paired_difference(pairs, digits)
