"""Absolute discounts, estimated from how many n-gram types occur how often."""

from __future__ import annotations

import numpy as np


def single_discount(counts: np.ndarray) -> np.ndarray:
    """Returns one discount for all counts, `Y = N1 / (N1 + 2 N2)`.

    `N_r` is the number of entries of `counts` equal to r. Without singletons the
    discount is 0. Source: Ney, Essen and Kneser (1994), as quoted by Chen and Goodman
    (1999).

    Args:
        counts: Positive counts of n-gram types, `[E]`.

    Returns:
        float64 `[3]`: the discounts of the counts 1, 2, and 3 or more (all equal).
    """
    n1, n2 = (int(np.count_nonzero(counts == r)) for r in (1, 2))
    return np.full(3, n1 / (n1 + 2 * n2) if n1 else 0.0)


def modified_discounts(counts: np.ndarray) -> np.ndarray:
    """Returns the discounts of modified Kneser-Ney smoothing.

    `D_r = r - (r + 1) Y N_{r+1} / N_r` for r = 1, 2, 3, the last one for all counts
    from 3 on, with `Y` and `N_r` as in `single_discount`. A formula that needs an `N_r`
    that is zero, or that gives a negative value, is replaced by `Y`; results are
    clamped to `[0, r]`. Source: Chen and Goodman (1999).

    Args:
        counts: Positive counts of n-gram types, `[E]`.

    Returns:
        float64 `[3]`: the discounts of the counts 1, 2, and 3 or more.
    """
    n = [int(np.count_nonzero(counts == r)) for r in range(1, 5)]
    discounts = single_discount(counts)
    y = discounts[0]
    for r in (1, 2, 3):
        if n[r - 1] and n[r]:
            estimate = r - (r + 1) * y * n[r] / n[r - 1]
            if estimate >= 0:
                discounts[r - 1] = min(estimate, r)
    return discounts
