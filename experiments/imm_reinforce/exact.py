"""Exact returns on the grid, of policies that need no training with two coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

# Of `rlm_tf.envs.next_states`: changes of y and x by up, down, left, right.
_MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))


class ExactReturns(NamedTuple):
    """Expected sums of rewards from a uniform start.

    Attributes:
        uniform: All four moves are as likely.
        restricted: Moves to the middle column and then up, which is what the POMDP's
            solution says that sees x alone (the max-utility target; it is tested in
            `tests/restricted/pomdp/test_alpha_vectors.py`).
        optimal: The best there is.
    """

    uniform: float
    restricted: float
    optimal: float


def exact_returns(rewards: Sequence[Sequence[float]], horizon: int) -> ExactReturns:
    """Returns what policies get on average, by dynamic programming.

    Args:
        rewards: Of each cell, `[Y, X]`; a step brings that of the cell it leads to.
        horizon: Steps.
    """
    landscape = np.asarray(rewards, np.float64)
    x = np.arange(landscape.shape[1])
    middle = landscape.shape[1] // 2
    move = np.where(x < middle, 3, np.where(x > middle, 2, 0))
    uniform, restricted, optimal = (np.zeros_like(landscape) for _ in range(3))
    for _ in range(horizon):
        uniform = _after_moves(landscape + uniform).mean(axis=0)
        restricted = np.take_along_axis(
            _after_moves(landscape + restricted), move[np.newaxis, np.newaxis], axis=0
        )[0]
        optimal = _after_moves(landscape + optimal).max(axis=0)
    return ExactReturns(*(float(v.mean()) for v in (uniform, restricted, optimal)))


def _after_moves(values: np.ndarray) -> np.ndarray:
    """Returns the values of the cells that the moves lead to, `[4, Y, X]`."""
    return np.stack([np.roll(values, (-dy, -dx), axis=(0, 1)) for dy, dx in _MOVES])
