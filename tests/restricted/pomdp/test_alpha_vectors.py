"""Solvers of POMDPs, and the policies that follow from them."""

from __future__ import annotations

import json
import pathlib

import numpy as np
import pytest

from rlm_tf.envs import grid_pomdp
from rlm_tf.restricted import (
    QMDP,
    FastInformedBound,
    alpha_vector_policy,
    utilities,
)

_PUBLISHED = json.loads(
    (pathlib.Path(__file__).parents[2] / "references/toroidal_grid.json").read_text()
)


def _grid_solution() -> tuple[np.ndarray, np.ndarray, int]:
    pomdp = grid_pomdp()
    solver = FastInformedBound(pomdp.transition, pomdp.observation, pomdp.reward, 0.9)
    return solver.solve(), pomdp.beliefs, solver.num_iterations


def test_vectors_of_the_grid_are_the_published_ones():
    alphas, _, iterations = _grid_solution()
    assert alphas.shape == (121, 4) and iterations == 61
    up = alphas[:, 0].reshape(11, 11)
    np.testing.assert_allclose(up, _PUBLISHED["alphas_up"], rtol=0, atol=1e-12)
    # The other actions' vectors are its mirror images.
    np.testing.assert_allclose(alphas[:, 1].reshape(11, 11), up[::-1], atol=1e-12)
    np.testing.assert_allclose(alphas[:, 2].reshape(11, 11), up.T, atol=1e-12)
    np.testing.assert_allclose(alphas[:, 3].reshape(11, 11), up.T[:, ::-1], atol=1e-12)


def test_vectors_of_the_grid_are_sixty_one_sweeps_of_q_iteration():
    """With deterministic moves and observations the bound is Q-iteration."""
    alphas, _, _ = _grid_solution()
    line = np.linspace(-2, 2, 11)
    squared = line[:, None] ** 2 + line**2
    reward = np.exp(-squared / 0.6) / (2 * np.pi * 0.3)
    q = np.zeros((11, 11, 4))
    for _ in range(61):
        best = q.max(axis=-1)
        ahead = [
            np.roll(best, 1, axis=0),
            np.roll(best, -1, axis=0),
            np.roll(best, 1, axis=1),
            np.roll(best, -1, axis=1),
        ]
        q = reward[..., None] + 0.9 * np.stack(ahead, axis=-1)
    np.testing.assert_allclose(alphas, q.reshape(121, 4), atol=1e-12)


def test_utilities_and_policies_of_the_grid():
    alphas, beliefs, _ = _grid_solution()
    found = utilities(alphas, beliefs)
    np.testing.assert_allclose(found, _PUBLISHED["utilities"], rtol=0, atol=1e-12)
    # RIGHT, a tie of UP and DOWN that goes to the first, LEFT.
    hard = alpha_vector_policy(alphas, beliefs).probs(np.arange(11)).numpy()
    np.testing.assert_array_equal(
        hard.argmax(axis=1), [3, 3, 3, 3, 3, 0, 2, 2, 2, 2, 2]
    )
    np.testing.assert_array_equal(hard.max(axis=1), 1)
    for temperature in (0.5, 1.0):
        soft = alpha_vector_policy(alphas, beliefs, temperature).probs(np.arange(11))
        np.testing.assert_allclose(soft, _PUBLISHED[f"softmax_{temperature}"], 1e-6)


def test_the_environments_reward_gives_the_same_argmax():
    """The published solver's reward is wider than the environment's."""
    pomdp = grid_pomdp(reward_width=0.1)
    alphas = FastInformedBound(
        pomdp.transition, pomdp.observation, pomdp.reward, 0.9
    ).solve()
    policy = alpha_vector_policy(alphas, pomdp.beliefs).probs(np.arange(11)).numpy()
    assert list(policy.argmax(axis=1)) == [3] * 5 + [0] + [2] * 5


@pytest.mark.parametrize("noise", [-1e-12, 1e-12])
def test_rounding_does_not_decide_ties(noise):
    alphas = np.array([[1.0, 1.0 + noise, 0.0]])
    policy = alpha_vector_policy(alphas, [[1.0]]).probs([0]).numpy()
    np.testing.assert_array_equal(policy, [[1, 0, 0]])
    strict = alpha_vector_policy(alphas, [[1.0]], tie_tolerance=0.0).probs([0]).numpy()
    assert strict.argmax() == (0 if noise < 0 else 1)


# === Any POMDP ===


def _random_pomdp(rng, states=5, actions=3, seen=4):
    transition = rng.dirichlet(np.ones(states), size=(states, actions))
    observation = rng.dirichlet(np.ones(seen), size=(actions, states))
    return transition, observation, rng.normal(size=(states, actions))


def test_one_sweep_by_loops(rng):
    transition, observation, reward = _random_pomdp(rng)
    states, actions = reward.shape
    # Two sweeps from zero: the first gives the reward.
    found = FastInformedBound(
        transition, observation, reward, 0.8, max_iterations=2
    ).solve()
    for s in range(states):
        for a in range(actions):
            total = 0.0
            for o in range(observation.shape[2]):
                total += max(
                    sum(
                        transition[s, a, t] * observation[a, t, o] * reward[t, b]
                        for t in range(states)
                    )
                    for b in range(actions)
                )
            np.testing.assert_allclose(found[s, a], reward[s, a] + 0.8 * total)


def test_the_bound_lies_between_its_neighbours(rng):
    """At most QMDP, and no less than the value of any fixed sequence of actions."""
    transition, observation, reward = _random_pomdp(rng)
    options = {"tolerance": 1e-10, "max_iterations": 2000}
    bound = FastInformedBound(transition, observation, reward, 0.8, **options).solve()
    qmdp = QMDP(transition, reward, 0.8, **options).solve()
    assert np.all(bound <= qmdp + 1e-9) and np.any(bound < qmdp - 1e-3)
    blind = np.stack(
        [
            np.linalg.solve(np.eye(5) - 0.8 * transition[:, a], reward[:, a])
            for a in range(3)
        ],
        axis=1,
    )
    assert np.all(blind <= bound + 1e-9)


def test_with_full_observation_it_is_qmdp(rng):
    transition, _, reward = _random_pomdp(rng)
    observation = np.broadcast_to(np.eye(5), (3, 5, 5))
    found = FastInformedBound(transition, observation, reward, 0.7).solve()
    np.testing.assert_allclose(found, QMDP(transition, reward, 0.7).solve(), rtol=1e-12)


def test_it_stops_as_it_says(rng):
    transition, observation, reward = _random_pomdp(rng)
    arguments = (transition, observation, reward, 0.9)
    solver = FastInformedBound(*arguments, tolerance=1e-3, max_iterations=1000)
    last = solver.solve()
    count = solver.num_iterations
    sweeps = [
        FastInformedBound(*arguments, tolerance=1e-30, max_iterations=n).solve()
        for n in (count - 2, count - 1, count)
    ]
    np.testing.assert_array_equal(last, sweeps[2])
    assert np.abs(sweeps[2] - sweeps[1]).max() < 1e-3
    assert np.abs(sweeps[1] - sweeps[0]).max() >= 1e-3
    short = FastInformedBound(*arguments, tolerance=1e-30, max_iterations=7)
    short.solve()
    assert short.num_iterations == 7


# === Mistakes ===


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"transition": np.ones((5, 3, 5))}, "every row of `transition` must be"),
        ({"transition": np.ones((5, 3, 4)) / 4}, r"axes \[S A S'\]"),
        ({"observation": np.ones((3, 5, 4))}, "every row of `observation`"),
        ({"observation": np.ones((2, 5, 4)) / 4}, r"axes \[A S' O\] with A = 3"),
        ({"reward": np.full((5, 3), np.nan)}, "`reward` must hold finite numbers"),
        ({"discount": 1.0}, r"`discount` must lie in \[0, 1\)"),
        ({"tolerance": 0.0}, "`tolerance` must be positive"),
        ({"max_iterations": 0}, "`max_iterations` must be an integer >= 1"),
    ],
)
def test_mistakes(rng, changes, message):
    names = ("transition", "observation", "reward")
    arguments = dict(zip(names, _random_pomdp(rng), strict=True))
    with pytest.raises(ValueError, match=message):
        FastInformedBound(**{**arguments, "discount": 0.9, **changes})


def test_mistakes_of_policies():
    with pytest.raises(ValueError, match=r"`alphas` must have axes \[S A\]"):
        utilities(np.ones((3, 2)), np.ones((1, 4)))
    with pytest.raises(ValueError, match="`temperature` and `tie_tolerance`"):
        alpha_vector_policy(np.ones((1, 2)), [[1.0]], temperature=-1)
    for alphas in (np.full((1, 2), np.nan), np.full((1, 2), np.inf), np.ones((1, 0))):
        with pytest.raises(ValueError, match="`alphas` must be finite numbers"):
            alpha_vector_policy(alphas, [[1.0]])
    for beliefs in ([[5.0]], [[-1.0]]):
        with pytest.raises(ValueError, match="`beliefs` must be a distribution"):
            alpha_vector_policy(np.ones((1, 2)), beliefs)
