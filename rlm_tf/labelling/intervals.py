"""How sure a share is."""

from __future__ import annotations

from typing import Literal

import numpy as np
import scipy.stats

from rlm_tf.checks import check_option

Method = Literal["clopper-pearson", "wilson"]


def binomial_interval(
    successes: float,
    trials: float,
    *,
    level: float = 0.95,
    method: Method = "clopper-pearson",
) -> tuple[float, float]:
    """Returns an interval for a probability, from independent trials.

    "clopper-pearson" covers it at least as often as `level` says, "wilson" about so
    often and is shorter.

    Args:
        successes: How many; may be no integer, of an effective number of trials.
        trials: Of how many, positive.
        level: In (0, 1).
        method: Of the two.

    Returns:
        (low, high), in [0, 1].

    Raises:
        ValueError: If a number is out of range.
    """
    name = "binomial_interval"
    check_option(name, "method", method, ("clopper-pearson", "wilson"))
    if not (0 < level < 1 and trials > 0 and 0 <= successes <= trials):
        raise ValueError(
            f"{name}: found {successes} successes of {trials} trials at level {level}; "
            "expected 0 to trials of a positive number, and a level in (0, 1)."
        )
    tail = (1 - level) / 2
    failures = trials - successes
    if method == "clopper-pearson":
        beta = scipy.stats.beta
        low = beta.ppf(tail, successes, failures + 1) if successes > 0 else 0.0
        high = beta.ppf(1 - tail, successes + 1, failures) if failures > 0 else 1.0
        return float(low), float(high)
    z = scipy.stats.norm.ppf(1 - tail)
    share = successes / trials
    scale = 1 + z**2 / trials
    middle = (share + z**2 / (2 * trials)) / scale
    half = (z / scale) * np.sqrt(share * (1 - share) / trials + z**2 / (4 * trials**2))
    low, high = max(middle - half, 0.0), min(middle + half, 1.0)
    # All or none: the end is reached, but for rounding.
    return float(low if successes else 0.0), float(high if failures else 1.0)
