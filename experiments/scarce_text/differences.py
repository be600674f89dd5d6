"""How far mixtures of an arm are above those of another."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.kit.paired import at, less
from experiments.scarce_text.arms import ENSEMBLE, PEERS

Row = Mapping[str, Any]


def mixed_less(
    base: str,
    arms: Mapping[str, Sequence[Row]],
    arm: str,
    place: Sequence[str] = ("mixed_test",),
) -> str:
    """Returns how far mixtures of an arm are above another's on test text, in words.

    Seed by seed; of an n-gram, against the mean of all seeds, of an ensemble, of those
    that it has. What that gains over its own members has the error of `gain`, over
    parts of the text, and is never in bold.

    Args:
        base: The other arm.
        arms: Rows by arm.
        arm: One of them.
        place: Where in a row the perplexity is, from outside in.
    """
    own, others = arms[arm], arms.get(base, [])
    if arm not in PEERS and not arm.startswith(ENSEMBLE):
        return less(base, arms, own, *place)
    seeds = own[0].get("seeds", [row["seed"] for row in others])
    theirs = [at(row, place) for row in others if row["seed"] in seeds]
    if not theirs or len(theirs) < len(seeds):
        return ""
    mixed = at(own[0], place)
    found = f"{mixed - np.mean(theirs):+.2f}"
    has_error = arm == ENSEMBLE + base and "gain" in own[0]
    if not has_error or tuple(place) != ("mixed_test",):
        return found
    return f"{found} ± {2 * own[0]['gain']['error'] * mixed:.2f}"


def less_in_parts(row: Row, base: Sequence[Row]) -> str:
    """Returns how far the mean of an arm's seeds is above another arm's, in words.

    Both mixed, on test text, with two standard errors over parts of the text. As other
    seeds would be others, that is no claim, and it is never printed as one.

    Args:
        row: Of the mean.
        base: The row of the other one, if there is one.
    """
    if (
        not base
        or row is base[0]
        or any("parts" not in r.get("gain", ()) for r in (row, *base))
    ):
        return ""
    parts = np.subtract(row["gain"]["parts"], base[0]["gain"]["parts"])
    error = 2 * row["mixed_test"] * np.std(parts, ddof=1) / math.sqrt(len(parts))
    found = row["mixed_test"] - base[0]["mixed_test"]
    return f"{found:+.2f} ± {error:.2f}"
