"""Moves, rewards and rollouts, against a walk in plain Python and exact returns."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.envs import ACTIONS, grid_pomdp, next_states, reward_landscape, rollout
from rlm_tf.envs.grid_dynamics import sample_action
from rlm_tf.restricted import FastInformedBound, alpha_vector_policy

# The middle row of the published landscape (variance 0.1).
_ROW = [
    3.280427874828626e-09,
    4.393906015922452e-06,
    0.0011882282184540716,
    0.06487506254477116,
    0.7151292571361672,
    1.5915494309189535,
]


def test_moves_wrap_around():
    moves = next_states(3)
    assert ACTIONS == ("UP", "DOWN", "LEFT", "RIGHT")
    # The corner (0, 0): up to (2, 0), down to (1, 0), left to (0, 2), right to (0, 1).
    np.testing.assert_array_equal(moves[0], [6, 3, 2, 1])
    np.testing.assert_array_equal(moves[4], [1, 7, 3, 5])
    # Every state is entered once by every action.
    for column in moves.T:
        np.testing.assert_array_equal(np.sort(column), np.arange(9))


def test_landscape_is_the_published_one():
    rewards = reward_landscape(11).reshape(11, 11)
    np.testing.assert_allclose(rewards[5], [*_ROW, *_ROW[-2::-1]], rtol=1e-12)
    np.testing.assert_allclose(rewards, rewards.T, rtol=1e-12)
    assert rewards.sum() == pytest.approx(6.250109660061639)


def test_other_landscapes():
    # Cells of a grid of five are one apart.
    cone = reward_landscape(5, "cone", 2.0).reshape(5, 5)
    np.testing.assert_allclose(cone[2], [0, 0.5, 1, 0.5, 0])
    assert cone[1, 1] == pytest.approx(1 - np.sqrt(2) / 2)
    near = reward_landscape(5, "indicator", 1.0).reshape(5, 5)
    assert near.sum() == 5 and near[2, 1] == 1 and near[1, 1] == 0


def test_impossible_landscapes():
    with pytest.raises(ValueError, match="`shape` must be one of gaussian"):
        reward_landscape(5, "flat")
    with pytest.raises(ValueError, match="`width` must be positive"):
        reward_landscape(5, width=0.0)
    with pytest.raises(ValueError, match="`size` must be an integer >= 2"):
        next_states(1)


@pytest.mark.parametrize("jit", [False, True])
def test_rollout_is_a_walk(rng, jit):
    runs, steps, size = 3, 40, 4
    probs = rng.dirichlet(np.ones(4), size=(runs, size * size)).astype(np.float32)
    starts = rng.integers(size * size, size=runs)
    uniforms = rng.random((steps, runs), np.float32)
    rewards = reward_landscape(size, width=1.0)
    compiled = tf.function(rollout, jit_compile=jit)
    seen = compiled(
        tf.constant(probs),
        tf.constant(starts),
        tf.constant(uniforms),
        next_states(size),
        tf.constant(rewards, tf.float32),
    )
    for run in range(runs):
        y, x = divmod(int(starts[run]), size)
        for t in range(steps):
            assert seen.states[t, run] == y * size + x
            action, passed = 0, 0.0
            row = probs[run, y * size + x]
            while action < 3 and uniforms[t, run] >= passed + row[action]:
                passed = np.float32(passed + row[action])
                action += 1
            assert (
                seen.actions[t, run] == action == sample_action(row, uniforms[t, run])
            )
            dy, dx = [(-1, 0), (1, 0), (0, -1), (0, 1)][action]
            y, x = (y + dy) % size, (x + dx) % size
            np.testing.assert_allclose(
                seen.rewards[t, run], rewards[y * size + x], rtol=1e-6
            )
        assert seen.last_states[run] == y * size + x


def test_actions_have_their_probabilities(rng):
    probs = np.array([[[0.1, 0.2, 0.3, 0.4]] * 4], np.float32)
    count = 20_000
    seen = rollout(
        np.repeat(probs, count, axis=0),
        np.zeros(count, np.int32),
        rng.random((1, count), np.float32),
        next_states(2),
        np.zeros(4, np.float32),
    )
    found = np.bincount(seen.actions.numpy().ravel(), minlength=4) / count
    np.testing.assert_allclose(found, probs[0, 0], atol=5 * 0.5 / np.sqrt(count))


def test_rollout_checks_shapes():
    with pytest.raises(ValueError, match="rollout: axis S of"):
        rollout(
            np.ones((2, 9, 4), np.float32) / 4,
            np.zeros(2, np.int32),
            np.zeros((5, 2), np.float32),
            next_states(4),
            np.zeros(16, np.float32),
        )


# === Exact returns of 22 steps, uniform start ===


def _exact_return(probs: np.ndarray, steps: int = 22) -> float:
    """Returns the mean sum of rewards of a policy `[S, A]`, by powers of its chain."""
    moves, rewards = next_states(11), reward_landscape(11)
    chain = np.zeros((121, 121))
    for state in range(121):
        for action in range(4):
            chain[state, moves[state, action]] += probs[state, action]
    where, total = np.full(121, 1 / 121), 0.0
    for _ in range(steps):
        where = where @ chain
        total += where @ rewards
    return total


def _restricted_policy(temperature: float) -> np.ndarray:
    pomdp = grid_pomdp()
    alphas = FastInformedBound(
        pomdp.transition, pomdp.observation, pomdp.reward, 0.9
    ).solve()
    table = alpha_vector_policy(alphas, pomdp.beliefs, temperature).probs(np.arange(11))
    return table.numpy()[np.arange(121) % 11].astype(np.float64)


def test_returns_of_an_aimless_walk():
    assert _exact_return(np.full((121, 4), 0.25)) == pytest.approx(1.1363835745566617)


@pytest.mark.parametrize(
    ("temperature", "expected"),
    [(0.0, 5.886723043163622), (0.5, 2.714306547554284), (1.0, 1.921904513566022)],
)
def test_returns_of_the_pomdp_policies(temperature, expected):
    found = _exact_return(_restricted_policy(temperature))
    assert found == pytest.approx(expected, rel=1e-6)


def test_best_returns():
    moves, rewards = next_states(11), reward_landscape(11)
    values = np.zeros(121)
    for _ in range(22):
        values = (rewards[moves] + values[moves]).max(axis=1)
    assert values.mean() == pytest.approx(21.41325803511273)
    assert values[0] == pytest.approx(16.499923125095506)
    assert values[60] == pytest.approx(25.37346556860632)


def test_rollouts_have_the_exact_mean_return(rng):
    probs = _restricted_policy(0.5).astype(np.float32)
    count = 4000
    seen = rollout(
        np.broadcast_to(probs, (count, 121, 4)),
        rng.integers(121, size=count),
        rng.random((22, count), np.float32),
        next_states(11),
        reward_landscape(11),
    )
    returns = seen.rewards.numpy().sum(axis=0)
    error = returns.std(ddof=1) / np.sqrt(count)
    assert abs(returns.mean() - 2.714306547554284) < 4 * error
