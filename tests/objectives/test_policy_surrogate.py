"""Eq. (9) and (10) by enumeration of all outcomes."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.objectives import mutual_information as mi
from tests.references.bmi_reference import ORACLE


def _policy(logits):
    """Log-probabilities of the six outcomes and of their marginals, `[2, 3]`."""
    joint = tf.reshape(tf.nn.log_softmax(tf.reshape(logits, [-1])), [2, 3])
    x = tf.reduce_logsumexp(joint, axis=1, keepdims=True) + tf.zeros([1, 3], tf.float64)
    y = tf.reduce_logsumexp(joint, axis=0, keepdims=True) + tf.zeros([2, 1], tf.float64)
    return joint, x, y


@pytest.mark.parametrize("marginals", ["exact", "of trajectories"])
@pytest.mark.parametrize("baselines", [(0.0, 0.0), (-0.7, 1.3)])
def test_expected_gradient_is_that_of_eq7(marginals, baselines):
    """All 36 pairs of outcomes, weighed with their probabilities."""
    case = ORACLE["policy_gradient"]
    counts = np.array(case["counts"]) / 24
    logits, scores = tf.constant(np.log(counts)), np.array(case["D"])
    cells = list(itertools.product(range(2), range(3)))
    pairs = list(itertools.product(cells, repeat=2))
    probs = np.array([counts[a] * counts[b] for a, b in pairs])
    first, second = (np.array(side) for side in zip(*pairs, strict=True))
    with tf.GradientTape() as tape:
        tape.watch(logits)
        joint, x, y = _policy(logits)
        if marginals == "of trajectories":
            x = y = joint
        loss, extra = mi.policy_surrogate(
            scores[tuple(first.T)],
            tf.gather_nd(joint, first),
            scores[first[:, 0], second[:, 1]],
            tf.gather_nd(x, first) + tf.gather_nd(y, second),
            joint_baseline=baselines[0],
            marginal_baseline=tf.fill([36], tf.constant(baselines[1], tf.float64)),
        )
        expected_loss = tf.reduce_sum(probs * loss)
    np.testing.assert_allclose(
        -tape.gradient(expected_loss, logits),
        case["gradient_by_joint_logits"],
        atol=1e-12,
    )
    objective = np.sum(probs * (extra.joint_rewards - extra.marginal_rewards))
    assert objective == pytest.approx(case["objective"], abs=1e-12)


def test_descent_raises_the_models_own_objective():
    """Sampled steps of gradient descent; the authors' sign would lower it."""
    case = ORACLE["policy_gradient"]
    scores = np.array(case["D"])
    logits = tf.Variable(np.log(np.array(case["counts"]) / 24))

    def objective():
        joint, x, y = (np.exp(values) for values in _policy(logits))
        joint_part = np.sum(joint * np.logaddexp(0, -scores))
        return -joint_part - np.sum(x * y * np.logaddexp(0, scores))

    before = objective()
    assert before == pytest.approx(case["objective"], abs=1e-12)
    rng = np.random.default_rng(0)
    for _ in range(20):
        probs = np.exp(_policy(logits)[0]).ravel()
        drawn = rng.choice(6, size=(2, 200), p=probs / probs.sum())
        first, second = (np.stack(np.divmod(cells, 3), axis=1) for cells in drawn)
        with tf.GradientTape() as tape:
            joint, x, y = _policy(logits)
            loss = mi.policy_surrogate(
                scores[tuple(first.T)],
                tf.gather_nd(joint, first),
                scores[first[:, 0], second[:, 1]],
                tf.gather_nd(x, first) + tf.gather_nd(y, second),
            ).loss
            mean = tf.reduce_mean(loss)
        logits.assign_sub(0.2 * tape.gradient(mean, logits))
    assert objective() > before + 0.02


def test_bound_of_eq10():
    """Text's pairs in place of the model's: off by at most what the KLs allow."""
    case = ORACLE["policy_gradient"]
    scores, model = np.array(case["D"]), np.array(case["counts"]) / 24
    text = np.array([[0.3, 0.1, 0.1], [0.1, 0.2, 0.2]])
    impossible = np.full(scores.size, -math.inf)
    # The two halves of the loss, outcome by outcome.
    positive, negative = (
        np.reshape(mi.jsd_proxy(*pair).loss, scores.shape)
        for pair in ((scores.ravel(), impossible), (-impossible, scores.ravel()))
    )

    def value(joint):
        product = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
        return -np.sum(joint * positive) - np.sum(product * negative)

    def divergence(p, q):
        return np.sum(p * np.log(p / q))

    assert value(model) == pytest.approx(case["objective"], abs=1e-12)
    most = np.max(positive) * math.sqrt(2 * divergence(text, model)) + np.max(
        negative
    ) * math.sqrt(
        2 * sum(divergence(text.sum(axis), model.sum(axis)) for axis in (0, 1))
    )
    assert 0 < abs(value(model) - value(text)) <= most


def test_only_log_probabilities_get_a_gradient(rng):
    values = [tf.constant(rng.normal(size=4)) for _ in range(6)]
    with tf.GradientTape() as tape:
        tape.watch(values)
        loss = mi.policy_surrogate(
            *values[:4], joint_baseline=values[4], marginal_baseline=values[5]
        ).loss
    gradients = tape.gradient(loss, values)
    assert [gradient is not None for gradient in gradients] == [
        *(False, True, False, True),
        *(False, False),
    ]
