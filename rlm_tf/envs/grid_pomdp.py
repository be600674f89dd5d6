"""The toroidal grid seen through one coordinate: a POMDP."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rlm_tf.envs.grid_dynamics import ACTIONS, next_states, reward_landscape


class GridPOMDP(NamedTuple):
    """Tables of a POMDP over S states, A actions and O observations.

    Attributes:
        transition: `[S, A, S']`, probabilities of the next state.
        observation: `[A, S', O]`, probabilities of what is observed there.
        reward: `[S, A]`, of an action in a state.
        beliefs: `[O, S]`, the uniform belief over the states behind an observation.
    """

    transition: np.ndarray
    observation: np.ndarray
    reward: np.ndarray
    beliefs: np.ndarray


def grid_pomdp(size: int = 11, reward_width: float = 0.3) -> GridPOMDP:
    """Returns the POMDP of an agent that sees x and holds a uniform belief over y.

    As published, its reward is that of the *current* state and is wider (variance 0.3)
    than the environment's, which pays for the next state (variance 0.1).

    Args:
        size: Cells on a side.
        reward_width: Variance of the reward's Gaussian.
    """
    moves = next_states(size)
    num_states, num_actions = size * size, len(ACTIONS)
    transition = np.zeros((num_states, num_actions, num_states))
    rows, columns = np.indices(moves.shape)
    transition[rows, columns, moves] = 1.0
    seen = np.eye(size)[np.arange(num_states) % size]
    rewards = reward_landscape(size, "gaussian", reward_width)
    return GridPOMDP(
        transition,
        np.tile(seen, (num_actions, 1, 1)),
        np.repeat(rewards[:, np.newaxis], num_actions, axis=1),
        seen.T / size,
    )
