"""Absolute discounts, estimated from how many n-gram types occur how often."""

from __future__ import annotations

import numpy as np


def counts_of_counts(counts: np.ndarray) -> np.ndarray:
    """Returns `N_1 .. N_4`, int `[4]`: how many counts equal 1, 2, 3, 4."""
    return np.array([np.count_nonzero(counts == r) for r in range(1, 5)])


def single_discount(types: np.ndarray) -> np.ndarray:
    """Returns one discount for all counts, `Y = N1 / (N1 + 2 N2)`.

    Without singletons the discount is 0. Source: Ney, Essen and Kneser (1994), as
    quoted by Chen and Goodman (1999).

    Args:
        types: `N_r`, how many n-gram types occur r = 1, 2, 3, 4 times, `[4]`.

    Returns:
        float64 `[3]`: the discounts of the counts 1, 2, and 3 or more (all equal).
    """
    n1, n2 = int(types[0]), int(types[1])
    return np.full(3, n1 / (n1 + 2 * n2) if n1 else 0.0)


def modified_discounts(types: np.ndarray) -> np.ndarray:
    """Returns the discounts of modified Kneser-Ney smoothing.

    `D_r = r - (r + 1) Y N_{r+1} / N_r` for r = 1, 2, 3, the last one for all counts
    from 3 on, with `Y` as in `single_discount`. A formula that needs an `N_r` that is
    zero, or that gives a negative value, is replaced by `Y`, and so are all of them
    without singletons; results are clamped to `[0, r]`. Source: Chen and Goodman
    (1999).

    Args:
        types: `N_r`, how many n-gram types occur r = 1, 2, 3, 4 times, `[4]`.

    Returns:
        float64 `[3]`: the discounts of the counts 1, 2, and 3 or more.
    """
    discounts = single_discount(types)
    y = discounts[0]
    if not types[0]:
        # Y = 0 would discount counts of 2 and 3 by 2 and 3: nothing would be left.
        return discounts
    for r in (1, 2, 3):
        if types[r - 1] and types[r]:
            estimate = r - (r + 1) * y * types[r] / types[r - 1]
            if estimate >= 0:
                discounts[r - 1] = min(estimate, r)
    return discounts
