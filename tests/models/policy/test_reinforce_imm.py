"""REINFORCE with induced model matching: the model, and many runs at once."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.envs import (
    grid_pomdp,
)
from rlm_tf.layers import DiscretePolicy
from rlm_tf.models import ReinforceIMM
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

# === Losses ===


def test_losses_by_loops(pomdp, target, rng):
    model = small_model(pomdp, target, coefficient=0.5, discount=0.8)
    states, outcomes = small_batch(rng)
    logits = np.array(model(np.arange(STATES)), np.float64)
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    target_probs = np.array(target.probs(np.arange(SIZE)), np.float64)
    reinforce, imm = [], []
    for row in range(4):
        for t in range(STEPS):
            to_go = sum(
                0.8 ** (u - t) * outcomes["rewards"][row, u] for u in range(t, STEPS)
            )
            state = states[row, t]
            action = outcomes["actions"][row, t]
            reinforce.append(-to_go * np.log(probs[state, action]))
            column = state % SIZE
            induced = probs[[y * SIZE + column for y in range(SIZE)]].mean(axis=0)
            p = target_probs[column]
            imm.append(np.sum(p * (np.log(p) - np.log(induced))))
    model.compile(adam())
    logs = model.evaluate(states, outcomes, verbose=0, return_dict=True)
    assert logs["reinforce"] == pytest.approx(np.mean(reinforce), rel=1e-5)
    assert logs["imm"] == pytest.approx(np.mean(imm), rel=1e-5)
    total = np.mean(reinforce) + 0.5 * np.mean(imm)
    assert logs["loss"] == pytest.approx(total, rel=1e-5)
    returns = outcomes["rewards"].sum(axis=1).mean()
    assert logs["return"] == pytest.approx(returns, rel=1e-5)


def test_gradients_by_the_chain_rule(pomdp, target, rng):
    """With respect to the table of log-probabilities, one term after the other."""
    model = small_model(pomdp, target, coefficient=0.5)
    states, outcomes = small_batch(rng, 1)
    model.compile(keras.optimizers.SGD(1.0))
    before = model.policy.output_bias.numpy()
    model.train_on_batch(states, outcomes)
    found = before - model.policy.output_bias.numpy()
    policy = DiscretePolicy(STATES, 4, HIDDEN, seed=3)
    probs = tf.nn.softmax(policy(np.arange(STATES))).numpy()
    expected = np.zeros(4)
    for t, state in enumerate(states[0]):
        to_go = sum(0.9 ** (u - t) * outcomes["rewards"][0, u] for u in range(t, STEPS))
        chosen = np.eye(4)[outcomes["actions"][0, t]]
        expected += to_go * (probs[state] - chosen)
        column = state % SIZE
        rows = probs[[y * SIZE + column for y in range(SIZE)]]
        ratio = target.probs([column]).numpy()[0] / rows.mean(axis=0)
        for row in rows:
            expected -= 0.5 / SIZE * (row * ratio - row * np.sum(row * ratio))
    np.testing.assert_allclose(found, expected / STEPS, rtol=1e-4, atol=1e-6)


def test_probabilities_for_logits_are_refused(rng):
    states, outcomes = small_batch(rng)
    policy = keras.Sequential(
        [keras.layers.Embedding(STATES, 4), keras.layers.Softmax()]
    )
    model = ReinforceIMM(policy)
    model.compile(adam())
    message = r"ReinforceIMM: `policy`: .* must be logits, not probabilities"
    with pytest.raises(ValueError, match=message):
        model.train_on_batch(states, outcomes)


def test_induced_policy_is_the_mean_over_what_is_not_seen(pomdp, target):
    model = small_model(pomdp, target)
    found = np.exp(model.induced_log_probs([2, 0]))
    probs = tf.nn.softmax(model(np.arange(STATES))).numpy().reshape(SIZE, SIZE, 4)
    np.testing.assert_allclose(found, probs.mean(axis=0)[[2, 0]], rtol=1e-5)


def test_weights_leave_steps_out(pomdp, target, rng):
    model = small_model(pomdp, target)
    model.compile(adam())
    states, outcomes = small_batch(rng, 2)
    weights = np.ones((2, STEPS), np.float32)
    weights[1, 3:] = 0

    def evaluate():
        data = tf.data.Dataset.from_tensors((states, outcomes, weights))
        return model.evaluate(data, verbose=0, return_dict=True)

    logs = evaluate()
    assert logs == model.evaluate(
        states, outcomes, sample_weight=weights, verbose=0, return_dict=True
    )
    for state, action, reward in ((7, 2, 5.0), (-1, -1, np.nan), (STATES, 4, np.inf)):
        states[1, 3:] = state
        outcomes["actions"][1, 3:] = action
        outcomes["rewards"][1, 3:] = reward
        assert evaluate() == logs


@pytest.mark.eager
def test_fit_takes_weights_of_steps(pomdp, target, rng):
    states, outcomes = small_batch(rng)
    weights = np.ones((4, STEPS), np.float32)
    weights[1:, 3:] = 0
    states[1:, 3:] = -1
    trained = []
    for options in (
        {"x": tf.data.Dataset.from_tensors((states, outcomes, weights))},
        {
            "x": states,
            "y": outcomes,
            "sample_weight": weights,
            "validation_data": (states, outcomes, weights),
        },
    ):
        model = small_model(pomdp, target)
        model.compile(adam())
        history = model.fit(**options, verbose=0, shuffle=False).history
        trained.append((model.policy.get_weights(), history["loss"]))
    np.testing.assert_allclose(trained[0][1], trained[1][1])
    for ours, theirs in zip(trained[0][0], trained[1][0], strict=True):
        np.testing.assert_array_equal(ours, theirs)
    with pytest.raises(ValueError, match=r"`sample_weight` must have axes \[B T\]"):
        model.fit(states, outcomes, sample_weight=weights[:, 0], verbose=0)


@pytest.mark.graph
def test_a_traced_step_names_what_has_other_axes(pomdp, target, rng):
    """Traced for weights of two ranks, it knows no rank."""
    states, outcomes = small_batch(rng)
    weights = np.ones((4, STEPS), np.float32)
    model = small_model(pomdp, target)
    model.compile(adam())
    model.fit(states, outcomes, sample_weight=weights, verbose=0)
    with pytest.raises(ValueError, match=r"`sample_weight` .*\[B T\]. .* 2, found 1\."):
        model.fit(states, outcomes, sample_weight=weights[:, 0], verbose=0)
    model.fit(states, outcomes, sample_weight=weights, verbose=0)


@pytest.mark.eager
def test_time_steps_that_no_trajectory_reaches_keep_their_baseline(pomdp, target, rng):
    model = small_model(pomdp, target, baseline="moving_average", horizon=STEPS)
    model.compile(keras.optimizers.SGD(0.0))
    model.mean_returns.assign(np.full(STEPS, 2.0))
    states, outcomes = small_batch(rng)
    weights = np.ones((4, STEPS), np.float32)
    weights[:, 5:] = 0
    model.train_on_batch(states, outcomes, weights)
    found = model.mean_returns.numpy()
    np.testing.assert_array_equal(found[5:], 2.0)
    rewards = outcomes["rewards"] * weights
    np.testing.assert_allclose(found[4], 1.8 + 0.1 * rewards[:, 4].mean(), rtol=1e-6)


def test_the_baseline_is_the_mean_of_earlier_batches(pomdp, target, rng):
    model = small_model(pomdp, target, baseline="moving_average", horizon=STEPS)
    model.compile(keras.optimizers.SGD(0.0))
    states, outcomes = small_batch(rng)
    plain = model.train_on_batch(states, outcomes, return_dict=True)["reinforce"]
    to_go = np.array(outcomes["rewards"], np.float64)
    for t in reversed(range(STEPS - 1)):
        to_go[:, t] += 0.9 * to_go[:, t + 1]
    np.testing.assert_allclose(model.mean_returns, 0.1 * to_go.mean(axis=0), rtol=1e-5)
    model.reset_metrics()
    less = model.train_on_batch(states, outcomes, return_dict=True)["reinforce"]
    log_probs = tf.nn.log_softmax(model(states)).numpy()
    taken = np.take_along_axis(log_probs, outcomes["actions"][..., None], -1)[..., 0]
    saved = np.mean(0.1 * to_go.mean(axis=0) * taken)
    assert less == pytest.approx(plain + saved, rel=1e-4)


# === Files and mistakes ===


def test_a_file_keeps_everything(pomdp, target, tmp_path, rng):
    schedule = keras.optimizers.schedules.ExponentialDecay(0.3, 10, 0.5)
    model = small_model(
        pomdp,
        target,
        coefficient=schedule,
        discount=0.7,
        baseline="moving_average",
        horizon=STEPS,
        clip_norm=2.0,
    )
    model.compile(adam())
    states, outcomes = small_batch(rng)
    model.train_on_batch(states, outcomes)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(states), model(states))
    for each in (model, loaded):
        each.train_on_batch(states, outcomes)
    np.testing.assert_allclose(loaded(states), model(states), atol=1e-6)
    np.testing.assert_allclose(loaded.mean_returns, model.mean_returns, rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"discount": 1.5}, r"`discount` must lie in \[0, 1\]"),
        ({"baseline": "critic"}, "`baseline` must be one of none, moving_average"),
        ({"baseline": "moving_average"}, "needs `horizon`"),
        ({"clip_norm": 0.0}, "`clip_norm` must be positive"),
        ({"coefficient": -1.0}, "`coefficient` must be finite and not negative"),
        ({"coefficient": np.nan}, "`coefficient` must be finite and not negative"),
        ({"coefficient": "a"}, "`coefficient` must be a number or a schedule"),
    ],
)
def test_mistakes(pomdp, target, options, message):
    with pytest.raises(ValueError, match=message):
        small_model(pomdp, target, **options)


def test_a_restricted_model_needs_a_belief(target):
    with pytest.raises(ValueError, match="`restricted_model` and `belief`, or neither"):
        ReinforceIMM(DiscretePolicy(STATES, 4), target)
    plain = ReinforceIMM(DiscretePolicy(STATES, 4))
    with pytest.raises(ValueError, match="there is no `restricted_model`"):
        plain.induced_log_probs([0])


def test_sizes_must_fit(pomdp, target, rng):
    belief = Belief.from_matrix(pomdp.beliefs)
    other = grid_pomdp(SIZE + 1)
    with pytest.raises(ValueError, match=r"`restricted_model` has 5 obs.*`belief` 6"):
        ReinforceIMM(
            DiscretePolicy(STATES, 4), target, Belief.from_matrix(other.beliefs)
        )
    with pytest.raises(ValueError, match="`policy` has 9 states, `belief` 25"):
        ReinforceIMM(DiscretePolicy(9, 4), target, belief)
    model = small_model(pomdp, target, baseline="moving_average", horizon=STEPS + 1)
    model.compile(adam())
    with pytest.raises(ValueError, match="axis 9 of `rewards` is 8"):
        model.train_on_batch(*small_batch(rng))


def test_a_configuration_makes_models_of_their_own(pomdp, target):
    config = small_model(pomdp, target).get_config()
    first, second = (ReinforceIMM.from_config(config) for _ in range(2))
    assert first.policy is not second.policy
