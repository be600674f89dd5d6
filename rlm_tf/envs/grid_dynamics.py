"""The toroidal grid: moves, rewards and rollouts as pure functions.

States are numbers `y * size + x`. Everything here works on arrays of states at once;
`rollout` runs in a graph, XLA included.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_integer, check_shapes
from rlm_tf.typing import TensorLike

ACTIONS = ("UP", "DOWN", "LEFT", "RIGHT")
"""What the agent may do, in the order of the actions' numbers."""

REWARD_SHAPES = ("gaussian", "cone", "indicator")
# (dy, dx) of each action.
_MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))
_EXTENT = 2.0


class Trajectories(NamedTuple):
    """What R agents did in T steps.

    Attributes:
        states: int32 `[T, R]`, where each step began.
        actions: int32 `[T, R]`.
        rewards: float32 `[T, R]`, received at the state that a step led to.
        last_states: int32 `[R]`, where the last step led.
    """

    states: tf.Tensor
    actions: tf.Tensor
    rewards: tf.Tensor
    last_states: tf.Tensor


def next_states(size: int) -> np.ndarray:
    """Returns where each action leads: int32 `[S, A]`, `S = size * size`."""
    check_integer("next_states", "size", size, 2)
    y, x = np.divmod(np.arange(size * size), size)
    columns = [(y + dy) % size * size + (x + dx) % size for dy, dx in _MOVES]
    return np.stack(columns, axis=-1).astype(np.int32)


def reward_landscape(
    size: int, shape: str = "gaussian", width: float = 0.1
) -> np.ndarray:
    """Returns the reward of each state, float64 `[S]`, with its peak at the centre.

    The grid spans [-2, 2] in both directions. With `d` the distance from its centre:

    - `"gaussian"`: the density of N(0, width I) at the state, the published one. Its
      peak is `1 / (2 pi width)`.
    - `"cone"`: `max(0, 1 - d / width)`.
    - `"indicator"`: 1 where `d <= width`, else 0.

    Raises:
        ValueError: If an argument is not one of these, or `width` is not positive.
    """
    check_integer("reward_landscape", "size", size, 2)
    if shape not in REWARD_SHAPES:
        raise ValueError(
            f"reward_landscape: `shape` must be one of {', '.join(REWARD_SHAPES)}; "
            f"found {shape!r}."
        )
    if not 0 < width < np.inf:
        raise ValueError(
            f"reward_landscape: `width` must be positive and finite, found {width}."
        )
    line = np.linspace(-_EXTENT, _EXTENT, size)
    squared = (line[:, np.newaxis] ** 2 + line**2).ravel()
    if shape == "gaussian":
        return np.exp(-squared / (2 * width)) / (2 * np.pi * width)
    if shape == "cone":
        return np.maximum(0.0, 1.0 - np.sqrt(squared) / width)
    return (np.sqrt(squared) <= width).astype(np.float64)


def rollout(
    policy_probs: TensorLike,
    starts: TensorLike,
    uniforms: TensorLike,
    moves: TensorLike,
    rewards: TensorLike,
) -> Trajectories:
    """Lets R agents, each with a policy of its own, act for T steps.

    A draw `u` takes the first action whose cumulative probability exceeds it.

    Args:
        policy_probs: `[R, S, A]`, each agent's probabilities of actions.
        starts: int `[R]`, states to begin with.
        uniforms: `[T, R]`, draws from [0, 1).
        moves: int `[S, A]`, see `next_states`.
        rewards: `[S]`, see `reward_landscape`.

    Raises:
        ValueError: If shapes do not fit.
    """
    probs = tf.convert_to_tensor(policy_probs)
    starts, uniforms = tf.cast(starts, tf.int32), tf.cast(uniforms, probs.dtype)
    moves, rewards = tf.cast(moves, tf.int32), tf.cast(rewards, tf.float32)
    check_shapes(
        "rollout",
        policy_probs=(probs, "R S A"),
        starts=(starts, "R"),
        uniforms=(uniforms, "T R"),
        moves=(moves, "S A"),
        rewards=(rewards, "S"),
    )
    num_states, num_actions = moves.shape
    # The last sum is one up to rounding; a draw may not pass it.
    sums = tf.cumsum(probs, axis=-1)[..., :-1]
    sums = tf.reshape(sums, [-1, num_actions - 1])
    moves = tf.reshape(moves, [-1])
    first_rows = tf.range(tf.shape(starts)[0]) * num_states
    steps = tf.shape(uniforms)[0]

    def step(t: tf.Tensor, states: tf.Tensor, seen: tf.Tensor, done: tf.Tensor):
        thresholds = tf.gather(sums, first_rows + states)
        passed = uniforms[t][:, tf.newaxis] >= thresholds
        actions = tf.reduce_sum(tf.cast(passed, tf.int32), axis=-1)
        following = tf.gather(moves, states * num_actions + actions)
        return t + 1, following, seen.write(t, states), done.write(t, actions)

    _, last, seen, done = tf.while_loop(
        lambda t, *_: t < steps,
        step,
        (
            tf.constant(0),
            starts,
            tf.TensorArray(tf.int32, steps, element_shape=starts.shape),
            tf.TensorArray(tf.int32, steps, element_shape=starts.shape),
        ),
    )
    states, actions = seen.stack(), done.stack()
    reached = tf.gather(moves, states * num_actions + actions)
    return Trajectories(states, actions, tf.gather(rewards, reached), last)


def sample_action(probs: np.ndarray, uniform: float) -> int:
    """Returns the action that `rollout` takes for a draw; `probs` is float32 `[A]`."""
    sums = np.cumsum(probs, dtype=np.float32)[:-1]
    return int(np.sum(np.float32(uniform) >= sums))
