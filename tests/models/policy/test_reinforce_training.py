"""REINFORCE with induced model matching on its environment, alone and many runs."""

from __future__ import annotations

import gymnasium
import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.batched_runs.reinforce_runs import GridTables
from rlm_tf.envs import (
    collect,
    collected_trajectories,
    next_states,
    reward_landscape,
    trajectory_draws,
)
from rlm_tf.layers import DiscretePolicy
from rlm_tf.models import ReinforceIMM, ReinforceRuns
from rlm_tf.restricted import Belief
from tests.models.policy.grid_world import (
    HIDDEN,
    SIZE,
    STATES,
    STEPS,
    adam,
    small_batch,
    small_model,
)

# Tracing takes longer than the few steps of most tests.
pytestmark = pytest.mark.eager


@pytest.mark.parametrize(
    "coefficient", [pytest.param(0.0, marks=pytest.mark.landing), 0.25]
)
def test_fit_on_the_environment_and_many_runs_learn_the_same(
    pomdp, target, coefficient
):
    epochs, seeds = 12, [3, 4]
    draws = [trajectory_draws(seed, epochs, STEPS, 1, STATES) for seed in seeds]
    tables = GridTables(
        next_states(SIZE), reward_landscape(SIZE), Belief.from_matrix(pomdp.beliefs)
    )
    runs = ReinforceRuns(tables, HIDDEN)
    table = target.probs(np.arange(SIZE)).numpy()
    weights, totals = runs.train(
        runs.initial(seeds),
        np.concatenate([d.starts for d in draws], axis=1),
        np.concatenate([d.uniforms for d in draws], axis=2),
        np.stack([table] * 2),
        [coefficient] * 2,
    )
    for number, seed in enumerate(seeds):
        env = gymnasium.make("rlm_tf/ToroidalGrid-v0", size=SIZE)
        model = small_model(pomdp, target, seed, coefficient=coefficient)
        model.compile(adam())
        data = collected_trajectories(env, model.action_probs, draws[number])
        history = model.fit(
            data, epochs=epochs, steps_per_epoch=1, shuffle=False, verbose=0
        ).history
        np.testing.assert_allclose(history["return"], totals[:, number], rtol=1e-5)
        for name, values in weights.items():
            np.testing.assert_allclose(
                getattr(model.policy, name), values[number], rtol=2e-4, atol=2e-5
            )


def test_runs_do_not_disturb_each_other(pomdp, target):
    tables = GridTables(
        next_states(SIZE), reward_landscape(SIZE), Belief.from_matrix(pomdp.beliefs)
    )
    runs = ReinforceRuns(tables, HIDDEN)
    table = target.probs(np.arange(SIZE)).numpy()
    draws = trajectory_draws(1, 5, STEPS, 3, STATES)
    together, _ = runs.train(
        runs.initial([1, 2, 3]),
        draws.starts,
        draws.uniforms,
        np.stack([table] * 3),
        [0.0, 0.25, 1.0],
    )
    alone, totals = runs.train(
        runs.initial([2]),
        draws.starts[:, 1:2],
        draws.uniforms[:, :, 1:2],
        table[np.newaxis],
        [0.25],
        epochs=5,
    )
    for name, values in alone.items():
        np.testing.assert_allclose(together[name][1], values[0], rtol=1e-5, atol=1e-6)
    # A shorter training is the beginning of a longer one.
    _, shorter = runs.train(
        runs.initial([2]),
        draws.starts[:, 1:2],
        draws.uniforms[:, :, 1:2],
        table[np.newaxis],
        [0.25],
        epochs=3,
    )
    np.testing.assert_allclose(shorter[:3], totals[:3], rtol=1e-6)
    np.testing.assert_array_equal(shorter[3:], 0)
    with pytest.raises(ValueError, match=r"`epochs` must lie in \[0, 5\]"):
        runs.train(
            runs.initial([2]),
            draws.starts[:, 1:2],
            draws.uniforms[:, :, 1:2],
            table[np.newaxis],
            [0.25],
            epochs=6,
        )


@pytest.mark.landing
@pytest.mark.graph
def test_two_replicas_equal_one_device(pomdp, target, rng, two_replicas):
    data = tf.data.Dataset.from_tensor_slices(small_batch(rng, 12)).batch(4)
    options = {"baseline": "moving_average", "horizon": STEPS, "clip_norm": 0.05}
    results = []
    for strategy in (tf.distribute.get_strategy(), two_replicas):
        with strategy.scope():
            model = small_model(pomdp, target, **options)
            model.compile(keras.optimizers.SGD(0.5))
        history = model.fit(data, epochs=2, shuffle=False, verbose=0).history
        weights = [np.array(value) for value in model.get_weights()]
        results.append((history, weights))
    (history, weights), (other_history, other_weights) = results
    for name in ("loss", "reinforce", "imm", "return"):
        np.testing.assert_allclose(other_history[name], history[name], rtol=1e-5)
    for ours, theirs in zip(weights, other_weights, strict=True):
        np.testing.assert_allclose(theirs, ours, atol=1e-6)


def test_trajectories_are_collected_with_the_policy_of_their_step():
    """Nothing reads ahead."""
    model = ReinforceIMM(DiscretePolicy(STATES, 4, HIDDEN, seed=1))
    model.compile(adam())
    env = gymnasium.make("rlm_tf/ToroidalGrid-v0", size=SIZE)
    seen = []

    def policy(states):
        seen.append(int(model.optimizer.iterations.numpy()))
        return model.action_probs(states)

    data = collected_trajectories(env, policy, trajectory_draws(1, 6, STEPS, 1, STATES))
    model.fit(data, epochs=6, steps_per_epoch=1, shuffle=False, verbose=0)
    assert seen == [*range(6)]


@pytest.mark.landing
@pytest.mark.graph
def test_two_replicas_learn_from_the_environment_as_one(pomdp, target, two_replicas):
    draws = trajectory_draws(3, 4, STEPS, 4, STATES)
    logits = []
    for strategy in (tf.distribute.get_strategy(), two_replicas):
        with strategy.scope():
            model = small_model(pomdp, target)
            model.compile(keras.optimizers.SGD(0.5))
        env = gymnasium.make("rlm_tf/ToroidalGrid-v0", size=SIZE)
        for starts, uniforms in zip(*draws, strict=True):
            states, actions, rewards = collect(
                env, model.action_probs, starts, uniforms
            )
            outcomes = {"actions": actions, "rewards": rewards}
            model.fit(states, outcomes, batch_size=4, verbose=0)
        logits.append(model(np.arange(STATES)))
    np.testing.assert_allclose(logits[1], logits[0], atol=1e-5)
    data = collected_trajectories(env, model.action_probs, draws)
    with pytest.raises(ValueError, match="with 2 replicas, `collected_trajectories`"):
        model.fit(data, epochs=4, steps_per_epoch=1)


@pytest.mark.landing
@pytest.mark.graph
def test_adam_under_xla(pomdp, target, rng):
    batch = small_batch(rng)
    logits = []
    for jit_compile in (False, True):
        model = small_model(pomdp, target)
        model.compile(adam(), jit_compile=jit_compile)
        model.fit(*batch, epochs=3, verbose=0, shuffle=False)
        logits.append(model(np.arange(STATES)))
    np.testing.assert_allclose(logits[1], logits[0], atol=1e-4)


@pytest.mark.landing
@pytest.mark.graph
def test_imm_teaches_what_the_restricted_policy_knows(pomdp, target, rng):
    """Without rewards the policy is drawn to one whose mean is the target."""
    model = small_model(pomdp, target, coefficient=1.0)
    model.compile(keras.optimizers.Adam(0.05))
    states = np.arange(STATES, dtype=np.int32)[:, np.newaxis]
    nothing = {"actions": states * 0, "rewards": np.zeros(states.shape, np.float32)}
    model.fit(states, nothing, batch_size=STATES, epochs=150, verbose=0)
    induced = np.exp(model.induced_log_probs(np.arange(SIZE)))
    np.testing.assert_allclose(induced, target.probs(np.arange(SIZE)), atol=0.01)


def test_collecting_needs_long_enough_episodes():
    env = gymnasium.make("rlm_tf/ToroidalGrid-v0", max_episode_steps=4)
    uniforms = np.zeros((5, 1), np.float32)
    with pytest.raises(ValueError, match="ended after 4 steps, 5 are wanted"):
        collect(env, lambda states: np.full((121, 4), 0.25), np.zeros(1), uniforms)
