"""Rewards to go, and the loss whose gradient is that of the expected return."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.objectives.policy_gradient import policy_gradient_loss, rewards_to_go


def test_rewards_to_go_by_the_recursion(rng):
    rewards = rng.normal(size=(7, 3, 2))
    expected, following = np.empty_like(rewards), np.zeros((3, 2))
    for t in reversed(range(7)):
        following = rewards[t] + 0.9 * following
        expected[t] = following
    np.testing.assert_allclose(rewards_to_go(rewards, 0.9), expected, rtol=1e-12)
    np.testing.assert_array_equal(rewards_to_go(rewards, 0.0), rewards)
    total = rewards.sum(axis=0)
    np.testing.assert_allclose(rewards_to_go(rewards, 1.0)[0], total, rtol=1e-12)


def test_value_and_gradient(rng):
    logits = tf.constant(rng.normal(size=(2, 3, 4)))
    actions = rng.integers(4, size=(2, 3))
    returns, baseline = tf.constant(rng.normal(size=(2, 2, 3)))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([logits, returns, baseline])
        log_probs = tf.nn.log_softmax(logits)
        loss = policy_gradient_loss(log_probs, actions, returns, baseline).loss
    probs = np.exp(log_probs)
    taken = np.take_along_axis(log_probs.numpy(), actions[..., None], -1)[..., 0]
    advantages = (returns - baseline).numpy()
    np.testing.assert_allclose(loss, -advantages * taken, rtol=1e-12)
    expected = advantages[..., None] * (probs - np.eye(4)[actions])
    np.testing.assert_allclose(tape.gradient(loss, logits), expected, rtol=1e-10)
    assert tape.gradient(loss, returns) is None
    assert tape.gradient(loss, baseline) is None


@pytest.mark.parametrize("baseline", [None, 3.0])
def test_expected_gradient_is_that_of_the_expected_return(rng, baseline):
    """Two steps of two actions: all four trajectories, with their probabilities.

    The state after the first action is that action; states 0 and 1, start 0.
    """
    logits = tf.constant(rng.normal(size=(2, 2)))
    reward = rng.normal(size=(2, 2))
    discount = 0.7
    with tf.GradientTape() as tape:
        tape.watch(logits)
        probs = tf.nn.softmax(logits)
        value = 0.0
        for first, second in itertools.product(range(2), repeat=2):
            gained = reward[0, first] + discount * reward[first, second]
            value += probs[0, first] * probs[first, second] * gained
    expected = tape.gradient(value, logits)
    found = np.zeros((2, 2))
    for first, second in itertools.product(range(2), repeat=2):
        states, actions = [0, first], [first, second]
        rewards = np.array([reward[0, first], reward[first, second]])
        with tf.GradientTape() as tape:
            tape.watch(logits)
            log_probs = tf.gather(tf.nn.log_softmax(logits), states)
            # Discounted from the start, as the value is.
            returns = rewards_to_go(rewards, discount) * discount ** np.arange(2)
            level = None if baseline is None else np.full(2, baseline)
            loss = policy_gradient_loss(log_probs, actions, returns, level).loss
            total = tf.reduce_sum(loss)
        chance = float(probs[0, first] * probs[first, second])
        found -= chance * tape.gradient(total, logits).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_mistakes():
    with pytest.raises(ValueError, match=r"`discount` must lie in \[0, 1\]"):
        rewards_to_go(np.zeros(3), 1.5)
    with pytest.raises(ValueError, match=r"`rewards` must have axes \[T \.\.\.\]"):
        rewards_to_go(tf.constant(1.0), 0.9)
    with pytest.raises(TypeError, match="`rewards` must be floating point"):
        rewards_to_go(np.zeros(3, np.int32), 0.9)
    with pytest.raises(ValueError, match="policy_gradient_loss"):
        policy_gradient_loss(np.zeros((3, 2)), np.zeros(3, np.int32), np.zeros(2))
