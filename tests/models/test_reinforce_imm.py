"""REINFORCE with induced model matching: the model, and many runs at once."""

from __future__ import annotations

import gymnasium
import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.envs import (
    collect,
    collected_trajectories,
    grid_pomdp,
    next_states,
    reward_landscape,
    trajectory_draws,
)
from rlm_tf.layers import DiscretePolicy
from rlm_tf.models import ReinforceIMM, ReinforceRuns
from rlm_tf.models.reinforce_runs import GridTables
from rlm_tf.restricted import Belief, FastInformedBound, alpha_vector_policy

SIZE, STATES, HIDDEN = 5, 25, 6
STEPS = 8


@pytest.fixture(scope="module")
def pomdp():
    return grid_pomdp(SIZE)


@pytest.fixture(scope="module")
def target(pomdp):
    alphas = FastInformedBound(
        pomdp.transition, pomdp.observation, pomdp.reward, 0.9
    ).solve()
    return alpha_vector_policy(alphas, pomdp.beliefs, 0.3)


def _model(pomdp, target, seed=3, **options) -> ReinforceIMM:
    policy = DiscretePolicy(STATES, 4, HIDDEN, seed=seed)
    return ReinforceIMM(policy, target, Belief.from_matrix(pomdp.beliefs), **options)


def _batch(rng, rows=4):
    states = rng.integers(STATES, size=(rows, STEPS)).astype(np.int32)
    actions = rng.integers(4, size=(rows, STEPS)).astype(np.int32)
    rewards = rng.random((rows, STEPS)).astype(np.float32)
    return states, {"actions": actions, "rewards": rewards}


def _adam() -> keras.optimizers.Optimizer:
    return keras.optimizers.Adam(0.01, epsilon=1e-8)


# === Losses ===


def test_losses_by_loops(pomdp, target, rng):
    model = _model(pomdp, target, coefficient=0.5, discount=0.8)
    states, outcomes = _batch(rng)
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
    model.compile(_adam())
    logs = model.evaluate(states, outcomes, verbose=0, return_dict=True)
    assert logs["reinforce"] == pytest.approx(np.mean(reinforce), rel=1e-5)
    assert logs["imm"] == pytest.approx(np.mean(imm), rel=1e-5)
    total = np.mean(reinforce) + 0.5 * np.mean(imm)
    assert logs["loss"] == pytest.approx(total, rel=1e-5)
    returns = outcomes["rewards"].sum(axis=1).mean()
    assert logs["return"] == pytest.approx(returns, rel=1e-5)


def test_gradients_by_the_chain_rule(pomdp, target, rng):
    """With respect to the table of log-probabilities, one term after the other."""
    model = _model(pomdp, target, coefficient=0.5)
    states, outcomes = _batch(rng, 1)
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


def test_induced_policy_is_the_mean_over_what_is_not_seen(pomdp, target):
    model = _model(pomdp, target)
    found = np.exp(model.induced_log_probs([2, 0]))
    probs = tf.nn.softmax(model(np.arange(STATES))).numpy().reshape(SIZE, SIZE, 4)
    np.testing.assert_allclose(found, probs.mean(axis=0)[[2, 0]], rtol=1e-5)


def test_weights_leave_steps_out(pomdp, target, rng):
    model = _model(pomdp, target)
    model.compile(_adam())
    states, outcomes = _batch(rng, 2)
    weights = np.ones((2, STEPS), np.float32)
    weights[1, 3:] = 0

    def evaluate():
        data = tf.data.Dataset.from_tensors((states, outcomes, weights))
        return model.evaluate(data, verbose=0, return_dict=True)

    logs = evaluate()
    states[1, 3:] = 7
    outcomes["actions"][1, 3:] = 2
    outcomes["rewards"][1, 3:] = 5
    assert evaluate() == logs


def test_the_baseline_is_the_mean_of_earlier_batches(pomdp, target, rng):
    model = _model(pomdp, target, baseline="moving_average", horizon=STEPS)
    model.compile(keras.optimizers.SGD(0.0))
    states, outcomes = _batch(rng)
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


# === Training ===


@pytest.mark.parametrize("coefficient", [0.0, 0.25])
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
        model = _model(pomdp, target, seed, coefficient=coefficient)
        model.compile(_adam())
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


def test_two_replicas_equal_one_device(pomdp, target, rng, two_replicas):
    data = tf.data.Dataset.from_tensor_slices(_batch(rng, 12)).batch(4)
    options = {"baseline": "moving_average", "horizon": STEPS, "clip_norm": 0.05}
    results = []
    for strategy in (tf.distribute.get_strategy(), two_replicas):
        with strategy.scope():
            model = _model(pomdp, target, **options)
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
    model.compile(_adam())
    env = gymnasium.make("rlm_tf/ToroidalGrid-v0", size=SIZE)
    seen = []

    def policy(states):
        seen.append(int(model.optimizer.iterations.numpy()))
        return model.action_probs(states)

    data = collected_trajectories(env, policy, trajectory_draws(1, 6, STEPS, 1, STATES))
    model.fit(data, epochs=6, steps_per_epoch=1, shuffle=False, verbose=0)
    assert seen == [*range(6)]


def test_two_replicas_learn_from_the_environment_as_one(pomdp, target, two_replicas):
    draws = trajectory_draws(3, 4, STEPS, 4, STATES)
    logits = []
    for strategy in (tf.distribute.get_strategy(), two_replicas):
        with strategy.scope():
            model = _model(pomdp, target)
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


def test_adam_under_xla(pomdp, target, rng):
    batch = _batch(rng)
    logits = []
    for jit_compile in (False, True):
        model = _model(pomdp, target)
        model.compile(_adam(), jit_compile=jit_compile)
        model.fit(*batch, epochs=3, verbose=0, shuffle=False)
        logits.append(model(np.arange(STATES)))
    np.testing.assert_allclose(logits[1], logits[0], atol=1e-4)


def test_imm_teaches_what_the_restricted_policy_knows(pomdp, target, rng):
    """Without rewards the policy is drawn to one whose mean is the target."""
    model = _model(pomdp, target, coefficient=1.0)
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


# === Files and mistakes ===


def test_a_file_keeps_everything(pomdp, target, tmp_path, rng):
    schedule = keras.optimizers.schedules.ExponentialDecay(0.3, 10, 0.5)
    model = _model(
        pomdp,
        target,
        coefficient=schedule,
        discount=0.7,
        baseline="moving_average",
        horizon=STEPS,
        clip_norm=2.0,
    )
    model.compile(_adam())
    states, outcomes = _batch(rng)
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
        _model(pomdp, target, **options)


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
    model = _model(pomdp, target, baseline="moving_average", horizon=STEPS + 1)
    model.compile(_adam())
    with pytest.raises(ValueError, match="axis 9 of `rewards` is 8"):
        model.train_on_batch(*_batch(rng))


def test_a_configuration_makes_models_of_their_own(pomdp, target):
    config = _model(pomdp, target).get_config()
    first, second = (ReinforceIMM.from_config(config) for _ in range(2))
    assert first.policy is not second.policy
