"""Trajectories of a gymnasium environment, collected with a policy as it stands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import gymnasium
import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_integer
from rlm_tf.envs.grid_dynamics import sample_action

PolicyProbs = Callable[[np.ndarray], np.ndarray]


class Draws(NamedTuple):
    """The chance of an epoch: where trajectories start and what decides actions.

    Attributes:
        starts: int32 `[E, B]`, first states of B trajectories in each of E epochs.
        uniforms: float32 `[E, T, B]`, draws from [0, 1), one for each action.
    """

    starts: np.ndarray
    uniforms: np.ndarray


def trajectory_draws(
    seed: int | Sequence[int], epochs: int, steps: int, batch: int, num_states: int
) -> Draws:
    """Returns the draws of a seed; more epochs leave those of the first as they are.

    Args:
        seed: An integer, or several that together make one.
        epochs: E.
        steps: T, steps of a trajectory.
        batch: B, trajectories of an epoch.
        num_states: Starts are uniform over `[0, num_states)`.
    """
    starts, uniforms = np.random.default_rng(seed).spawn(2)
    return Draws(
        starts.integers(num_states, size=(epochs, batch)).astype(np.int32),
        uniforms.random((epochs, steps, batch), np.float32),
    )


def collect(
    env: gymnasium.Env, policy: PolicyProbs, starts: np.ndarray, uniforms: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lets a policy act in a `ToroidalGrid`, one trajectory after the other.

    Args:
        env: The environment, possibly wrapped.
        policy: int states `[N]` to probabilities of actions `[N, A]`; asked once, for
            all states.
        starts: int `[B]`.
        uniforms: `[T, B]`.

    Returns:
        States int32 `[B, T]`, actions int32 `[B, T]`, rewards float32 `[B, T]`.

    Raises:
        ValueError: If an episode ends before T steps.
    """
    steps, batch = uniforms.shape
    size = env.unwrapped.size  # type: ignore[attr-defined]
    states = np.zeros((batch, steps), np.int32)
    actions = np.zeros((batch, steps), np.int32)
    probs = policy(np.arange(size * size, dtype=np.int32))
    rewards = np.zeros((batch, steps), np.float32)
    for row in range(batch):
        cell = divmod(int(starts[row]), size)
        _, info = env.reset(options={"state": cell})
        for t in range(steps):
            states[row, t] = info["state"]
            actions[row, t] = sample_action(probs[states[row, t]], uniforms[t, row])
            _, rewards[row, t], terminated, truncated, info = env.step(actions[row, t])
            if (terminated or truncated) and t + 1 < steps:
                raise ValueError(
                    f"collect: the episode ended after {t + 1} steps, {steps} are "
                    "wanted; pass `max_episode_steps` to gymnasium.make."
                )
    return states, actions, rewards


def collected_trajectories(
    env: gymnasium.Env, policy: PolicyProbs, draws: Draws
) -> tf.data.Dataset:
    """Returns a dataset for `ReinforceIMM.fit`: one batch of trajectories an epoch.

    Nothing is collected ahead: a batch is drawn when a training step asks for it, with
    the policy as the step before has left it. Call `fit(dataset, epochs=E,
    steps_per_epoch=1, shuffle=False)`, on one device: a distribution strategy reads
    ahead, and `ReinforceIMM` refuses it. There, `collect` an epoch's batch and fit it.

    Args:
        env: A `ToroidalGrid`, possibly wrapped.
        policy: int states `[N]` to probabilities `[N, A]`; reads the model's weights.
        draws: Of all E epochs.

    Returns:
        Elements `(states [B, T], {"actions": [B, T], "rewards": [B, T]})`.
    """
    check_integer("collected_trajectories", "epochs", len(draws.starts), 1)
    _, steps, batch = draws.uniforms.shape

    def batches() -> Iterator[tuple[np.ndarray, dict[str, np.ndarray]]]:
        for starts, uniforms in zip(*draws, strict=True):
            states, actions, rewards = collect(env, policy, starts, uniforms)
            yield states, {"actions": actions, "rewards": rewards}

    def spec(dtype: tf.DType) -> tf.TensorSpec:
        return tf.TensorSpec((batch, steps), dtype)

    outcomes = {"actions": spec(tf.int32), "rewards": spec(tf.float32)}
    signature = (spec(tf.int32), outcomes)
    dataset = tf.data.Dataset.from_generator(batches, output_signature=signature)
    options = tf.data.Options()
    # It would collect while the step before still changes the policy.
    options.experimental_optimization.inject_prefetch = False
    dataset = dataset.with_options(options)
    dataset.is_on_policy = True
    return dataset
