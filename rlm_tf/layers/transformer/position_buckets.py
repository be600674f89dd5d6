"""Buckets of relative positions, one learnt bias each (Raffel et al. 2020)."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from rlm_tf.checks import check_ids, check_integer, check_option

BucketRule = Literal["t5", "cocolm"]
BUCKET_RULES: tuple[BucketRule, ...] = ("t5", "cocolm")


def relative_position_buckets(
    relative: npt.ArrayLike,
    *,
    num_buckets: int = 32,
    max_distance: int = 128,
    variant: BucketRule = "t5",
) -> np.ndarray:
    """Returns the bucket of each distance, key less query, in both directions.

    Half of the buckets are for keys behind the query. Of each half the first e = half /
    2 distances have a bucket of their own, and others share one that widens as they
    grow, with M = half - e:

        t5      n < e: n; else e + floor(M ln(n / e) / ln(max_distance / e)), at most
                half - 1; half more for keys behind. Bucket `half` is never used.
        cocolm  n < e: n; else e + ceil(M' ln(n / e) / ln((max_distance - 1) / e)) with
                M' = M - 1, at most half - 1; negative for keys before.

    Computed in integers: distances of 16, 32 and 64 lie on the edges of the published
    buckets, where rounded logarithms decide by chance.

    Args:
        relative: Integers, any shape.
        num_buckets: Of both directions, a multiple of 4.
        max_distance: From which on all distances share the last bucket at the latest.
        variant: "t5", or "cocolm" for the rule of COCO-LM's code.

    Returns:
        int32, the shape of `relative`: "t5" in [0, num_buckets), "cocolm" in (-half,
        half).

    Raises:
        ValueError: If an argument is out of range, or `relative` no integers.
    """
    name = "relative_position_buckets"
    check_integer(name, "num_buckets", num_buckets, 4)
    check_option(name, "variant", variant, BUCKET_RULES)
    half = num_buckets // 2
    if num_buckets % 4:
        raise ValueError(
            f"{name}: `num_buckets` must be a multiple of 4, found {num_buckets}."
        )
    check_integer(name, "max_distance", max_distance, half // 2 + 2)
    check_ids(name, relative=relative)
    distances = np.asarray(relative, np.int64)
    of_distance = _buckets(half, max_distance, variant)
    found = of_distance[np.minimum(np.abs(distances), len(of_distance) - 1)]
    if variant == "cocolm":
        return (np.sign(distances) * found).astype(np.int32)
    return (found + half * (distances > 0)).astype(np.int32)


def _buckets(half: int, max_distance: int, variant: BucketRule) -> np.ndarray:
    """Returns the bucket of distances 0, 1, ... up to the first in the last bucket."""
    exact = half // 2
    found = [*range(exact)]
    widening = half - exact
    while found[-1] < half - 1:
        distance = len(found)
        if variant == "t5":
            # The greatest j with (max_distance / e)^j <= (n / e)^M.
            j = 0
            while _at_most(max_distance, j + 1, distance, widening, exact):
                j += 1
        else:
            # The least j with (n / e)^M' <= ((max_distance - 1) / e)^j.
            j = 0
            while not _at_most(distance, widening - 1, max_distance - 1, j, exact):
                j += 1
        found.append(min(exact + j, half - 1))
    return np.array(found)


def _at_most(left: int, left_power: int, right: int, right_power: int, by: int) -> bool:
    """Returns whether (left / by)^left_power <= (right / by)^right_power."""
    return left**left_power * by**right_power <= right**right_power * by**left_power
