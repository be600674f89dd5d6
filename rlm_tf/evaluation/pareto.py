"""Pareto frontiers of a cost against a gain: data fit against use of latents."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def pareto_frontier(costs: npt.ArrayLike, gains: npt.ArrayLike) -> list[int]:
    """Returns which points no other one beats, in the order of their gains.

    A point is beaten by one that costs no more and gains no less, and is better in one
    of both; of equal points the first is kept. Points with a number that is not finite
    are left out.

    Args:
        costs: `[N]`, such as negative log-likelihoods; lower is better.
        gains: `[N]`, such as the use of latents; higher is better.

    Returns:
        Indices, with rising gains and so with rising costs.

    Raises:
        ValueError: If the arguments are not vectors of one length.
    """
    cost, gain = _vectors("pareto_frontier", costs, gains)
    finite = np.flatnonzero(np.isfinite(cost) & np.isfinite(gain))
    # From the largest gain down, each point must cost less than all before it.
    order = finite[np.lexsort((finite, cost[finite], -gain[finite]))]
    kept: list[int] = []
    least = math.inf
    for index in order:
        if cost[index] < least:
            kept.append(int(index))
            least = float(cost[index])
    return kept[::-1]


def least_costs(
    costs: npt.ArrayLike, gains: npt.ArrayLike, levels: Sequence[float]
) -> list[float]:
    """Returns the least cost of points that gain at least each level.

    Args:
        costs: `[N]`.
        gains: `[N]`.
        levels: `[M]`.

    Returns:
        `[M]`, not a number where no point gains enough.

    Raises:
        ValueError: If the arguments are not vectors of one length.
    """
    cost, gain = _vectors("least_costs", costs, gains)
    finite = np.isfinite(cost) & np.isfinite(gain)
    enough = [cost[finite & (gain >= level)] for level in levels]
    return [float(found.min()) if found.size else math.nan for found in enough]


def _vectors(
    function: str, costs: npt.ArrayLike, gains: npt.ArrayLike
) -> tuple[np.ndarray, np.ndarray]:
    cost, gain = np.asarray(costs, np.float64), np.asarray(gains, np.float64)
    if cost.ndim != 1 or cost.shape != gain.shape:
        raise ValueError(
            f"{function}: `costs` and `gains` must be vectors of one length, found "
            f"shapes {list(cost.shape)} and {list(gain.shape)}."
        )
    return cost, gain
