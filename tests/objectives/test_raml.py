"""Importance-weighted RAML: oracles, tails that add up, bias by enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.objectives import raml
from tests.references.bmi_reference import (
    ORACLE,
    effective_sample_size,
    exact_raml,
    geometric_probs,
)

_CASE = ORACLE["raml"]
_EXACT = _CASE["exact"]


def _given(name):
    return np.array(_CASE[name], np.float64)


# === Proposals ===


@pytest.mark.parametrize("tail", raml.TAILS)
def test_proposals_of_the_oracle(tail):
    found = raml.geometric_log_probs(
        np.array(_CASE["offsets"]), np.array(_CASE["most"]), rate=0.3, tail=tail
    )
    np.testing.assert_allclose(found, _CASE["log_proposals"][tail], atol=1e-12)


@pytest.mark.parametrize("tail", raml.TAILS)
@pytest.mark.parametrize("rate", [0.3, 1.0, 1e-3])
@pytest.mark.parametrize("most", [0, 1, 6])
def test_proposals_by_adding_up(tail, rate, most):
    offsets = np.arange(most + 1)
    found = raml.geometric_log_probs(
        offsets, np.full(most + 1, most), rate=rate, tail=tail
    )
    expected = geometric_probs(rate, most, tail)
    np.testing.assert_allclose(np.exp(found), expected, rtol=1e-9, atol=1e-300)
    if tail != "infinite":
        assert np.sum(np.exp(found)) == pytest.approx(1.0, abs=1e-12)


def test_what_cannot_be_drawn_and_a_text_without_end():
    offsets = np.array([-1.0, 2.0, 3.0], np.float32)
    most = np.array([5, 1, 3])
    for tail in ("renormalised", "clipped"):
        found = raml.geometric_log_probs(offsets, most, tail=tail)
        assert found.dtype == tf.float32
        assert np.isneginf(found).tolist() == [True, True, False]
        endless = raml.geometric_log_probs(offsets, tail=tail)
        np.testing.assert_array_equal(
            endless, raml.geometric_log_probs(offsets, tail="infinite")
        )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_proposals_of_tiny_rates(dtype):
    """One sentence is left: it is drawn for sure."""
    for rate in (1e-3, 1e-6, 1e-8, 1e-17):
        found = raml.geometric_log_probs(
            np.zeros(1, dtype), np.zeros(1, dtype), rate=rate
        )
        assert float(found[0]) == pytest.approx(0.0, abs=1e-6)


# === Weights and loss ===


@pytest.mark.parametrize(
    "case", _CASE["cases"], ids=lambda c: f"{c['tail']}-{c['temperature']:g}"
)
def test_weights_and_losses_of_the_oracle(case):
    given = _given("rewards"), np.array(_CASE["log_proposals"][case["tail"]])
    weights, size = raml.importance_weights(*given, temperature=case["temperature"])
    np.testing.assert_allclose(weights, case["weights"], atol=1e-12)
    assert float(size) == pytest.approx(case["effective_sample_size"], abs=1e-12)
    assert effective_sample_size(case["weights"]) == pytest.approx(float(size))
    for scale in raml.SCALES:
        loss, extra = raml.iw_raml(
            _given("nll"),
            _given("lengths"),
            *given,
            temperature=case["temperature"],
            scale=scale,
        )
        np.testing.assert_allclose(loss, case["loss"][scale], rtol=1e-12)
        np.testing.assert_allclose(extra.weights, weights, rtol=1e-12)


def test_only_the_likelihood_gets_a_gradient():
    given = [
        tf.constant(_given(name)) for name in ("nll", "lengths", "rewards", "rewards")
    ]
    with tf.GradientTape() as tape:
        tape.watch(given)
        loss, extra = raml.iw_raml(*given)
    gradients = tape.gradient(loss, given)
    np.testing.assert_allclose(gradients[0], extra.weights / given[1], rtol=1e-12)
    # Lengths are data; nobody asks for theirs.
    assert gradients[2:] == [None, None]


def test_what_weighs_nothing_may_be_impossible():
    nll = tf.constant([1.0, math.inf])
    with tf.GradientTape() as tape:
        tape.watch(nll)
        loss = raml.iw_raml(nll, [2, 2], [0.0, -1e4], np.zeros(2)).loss
    np.testing.assert_allclose(loss, [0.5, 0.0])
    np.testing.assert_allclose(tape.gradient(loss, nll), [0.5, 0.0])


def test_what_cannot_be_drawn_weighs_nothing():
    found = raml.importance_weights([0.0, 0.0, 1.0], [-np.inf, -1.0, -2.0])
    np.testing.assert_allclose(
        found.weights, [0, *np.exp([1, 3]) / np.exp([1, 3]).sum()], rtol=1e-6
    )
    loss = raml.iw_raml([np.inf, 3.0], [1, 2], [0.0, 0.0], [-np.inf, -1.0]).loss
    np.testing.assert_allclose(loss, [0, 1.5])
    none = raml.importance_weights([0.0, 2.0], [-np.inf, -np.inf])
    np.testing.assert_array_equal(none.weights, [0, 0])
    assert none.effective_sample_size == 0


def test_rewards_beyond_half_precision():
    weights, size = raml.importance_weights(
        np.array([1e4, 1e4, 9e3], "float16"), np.zeros(3), temperature=0.1
    )
    assert weights.dtype == size.dtype == tf.float16
    np.testing.assert_allclose(weights, [0.5, 0.5, 0.0])
    assert float(size) == 2.0


@pytest.mark.parametrize("reward", [-1e4, 1e4])
def test_extreme_rewards_and_a_batch_of_one(reward):
    weights, size = raml.importance_weights(
        np.array([reward, 0.0]), np.zeros(2), temperature=1e-3
    )
    np.testing.assert_array_equal(weights, [reward > 0, reward < 0])
    assert float(size) == 1.0
    # The coldest that is possible.
    least = float(np.finfo(np.float32).tiny)
    cold = raml.importance_weights(
        np.array([0.0, reward, 0.0], np.float32), [0, 0, -np.inf], temperature=least
    )
    np.testing.assert_array_equal(cold.weights, [reward < 0, reward > 0, 0])
    loss, _ = raml.iw_raml(np.ones(1), [0], np.full(1, reward), np.full(1, -50.0))
    assert float(loss[0]) == 1.0


# === Against exact RAML, Eq. (13) ===


def test_equal_proposals_of_all_sentences_give_the_payoff_distribution():
    rewards = np.array(_EXACT["rewards"])
    weights, _ = raml.importance_weights(rewards, np.full(4, -math.log(4)))
    np.testing.assert_allclose(weights, _EXACT["payoff"], atol=1e-12)


@pytest.mark.parametrize("tail", ["renormalised", "clipped"])
def test_weights_before_they_are_normalised_are_unbiased(tail):
    """Weighed by what each offset is drawn with, computed here, they are the payoff."""
    rewards = np.array(_EXACT["rewards"])
    drawn = 0.3 * 0.7 ** np.arange(4)
    if tail == "clipped":
        drawn[-1] = 0.7**3
    elif tail == "renormalised":
        drawn /= drawn.sum()
    log_proposals = raml.geometric_log_probs(np.arange(4), np.full(4, 3), tail=tail)
    payoff = drawn * np.exp(raml.log_importance_weights(rewards, log_proposals))
    np.testing.assert_allclose(payoff / payoff.sum(), _EXACT["payoff"], atol=1e-12)
    assert payoff.sum() == pytest.approx(np.exp(rewards).sum(), rel=1e-9)


def _expected_loss(batch, log_model, rewards, log_proposals):
    """Over all batches of proposals: what a step's loss is on average."""
    total = 0.0
    for drawn in itertools.product(range(4), repeat=batch):
        index = np.array(drawn)
        probability = np.exp(np.sum(log_proposals[index]))
        weights, _ = raml.importance_weights(rewards[index], log_proposals[index])
        total += probability * np.sum(weights * -log_model[index])
    return total


def test_bias_falls_as_the_batch_grows():
    """With one sample it is the proposals' likelihood; with many, that of RAML."""
    rewards = np.array(_EXACT["rewards"])
    log_model = np.log([0.1, 0.2, 0.3, 0.4])
    log_proposals = np.array(raml.geometric_log_probs(np.arange(4), np.full(4, 3)))
    exact = exact_raml(log_model, rewards, _EXACT["temperature"])
    biases = [
        abs(_expected_loss(batch, log_model, rewards, log_proposals) - exact)
        for batch in (1, 2, 4)
    ]
    of_proposals = -np.sum(np.exp(log_proposals) * log_model)
    assert biases[0] == pytest.approx(abs(of_proposals - exact), abs=1e-12)
    assert biases[0] > biases[1] > biases[2] > 0


# === Mistakes ===


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: raml.geometric_log_probs([0], rate=0.0), r"`rate` must lie in"),
        (lambda: raml.geometric_log_probs([0], rate=1.5), r"`rate` must lie in"),
        (lambda: raml.geometric_log_probs([0], tail="cut"), "`tail` must be one of"),
        (
            lambda: raml.geometric_log_probs([0, 1], [1], tail="clipped"),
            "axis B of `most`",
        ),
        (
            lambda: raml.importance_weights(np.ones(2), np.ones(2), temperature=0.0),
            "`temperature` must be finite and positive",
        ),
        (lambda: raml.iw_raml(*[np.ones(2)] * 4, scale="mean"), "`scale` must be one"),
        (lambda: raml.iw_raml(np.ones(2), *[np.ones(3)] * 3), "axis B of `lengths`"),
    ],
)
def test_mistakes(call, message):
    with pytest.raises(ValueError, match=message):
        call()
