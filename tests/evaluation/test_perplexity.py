"""Tests of perplexity: every token once, states carried, any mixture in one pass."""

from __future__ import annotations

import math

import hypothesis
import keras
import numpy as np
import pytest
import scipy.optimize
import tensorflow as tf
from hypothesis import strategies

from rlm_tf.evaluation import (
    evaluate,
    interpolate,
    interpolated_perplexity,
    perplexity_of,
    restricted_target_log_probs,
    target_log_probs,
    tune_floor,
    tune_interpolation,
)
from rlm_tf.restricted import KneserNey
from tests.references import evaluation as reference

# Tracing takes longer than the few steps of most tests.
pytestmark = pytest.mark.eager

V, EOS = 9, 3


@pytest.fixture(scope="module")
def tokens():
    return np.random.default_rng(4).integers(V, size=61).astype(np.int32)


# === Streams ===


@pytest.mark.parametrize("window", [1, 7, 61, 100])
def test_one_row_sees_everything_before(model, predict, tokens, window):
    expected = reference.log_likelihoods(predict, tokens, EOS)
    found = target_log_probs(model, tokens, 1, window, prefix=EOS)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=2e-6)


@pytest.mark.graph
@pytest.mark.parametrize("batch_size", [2, 5, 61, 80])
def test_rows_start_afresh_and_nothing_else_changes(model, predict, tokens, batch_size):
    length = math.ceil(len(tokens) / batch_size)
    expected = []
    for first in range(0, len(tokens), length):
        before = EOS if first == 0 else int(tokens[first - 1])
        row = tokens[first : first + length]
        expected += reference.log_likelihoods(predict, row, before)
    found = target_log_probs(model, tokens, batch_size, 4, prefix=EOS)
    np.testing.assert_allclose(found, expected, atol=2e-6)


def test_evaluate(model, predict, tokens):
    log_probs = reference.log_likelihoods(predict, tokens, EOS)
    result = evaluate(model, tokens, 1, 10, prefix=EOS)
    nats = -math.fsum(log_probs) / len(tokens)
    assert result.num_tokens == 61
    assert result.nats_per_token == pytest.approx(nats, rel=1e-6)
    assert result.perplexity == pytest.approx(math.exp(nats), rel=1e-6)
    assert result.bits_per_token == pytest.approx(nats / math.log(2), rel=1e-6)


def test_carried_state_of_the_model_is_untouched(model, tokens):
    inputs = (tf.constant(tokens[None, :10]), tf.constant([1]))
    model(inputs, training=False)
    before = [state.numpy() for state in tf.nest.flatten(model.carried_states())]
    evaluate(model, tokens, 1, 10, prefix=EOS)
    after = tf.nest.flatten(model.carried_states())
    for state, value in zip(after, before, strict=True):
        np.testing.assert_array_equal(state, value)


def test_wrapper_and_model_without_states(model, tokens):
    class Wrapper(keras.Model):
        wraps_language_model = True

        def __init__(self, model):
            super().__init__()
            self.model = model

    alone = target_log_probs(model, tokens, 2, 5, prefix=EOS)
    np.testing.assert_array_equal(
        target_log_probs(Wrapper(model), tokens, 2, 5, prefix=EOS), alone
    )

    bigram = keras.Sequential([keras.layers.Embedding(V, V)])
    table = tf.nn.log_softmax(bigram(tf.range(V)[None]))[0].numpy()
    expected = table[np.concatenate([[EOS], tokens[:-1]]), tokens]
    np.testing.assert_allclose(
        target_log_probs(bigram, tokens, 2, 5, prefix=EOS), expected, atol=1e-6
    )


def test_perplexity_of_impossible_and_undefined():
    impossible = perplexity_of(np.array([-1.0, -np.inf]))
    assert impossible[:3] == (math.inf, math.inf, math.inf)
    assert perplexity_of(np.array([-1000.0])).perplexity == math.inf
    with pytest.raises(ValueError, match="log-probability 1 is not a number"):
        perplexity_of(np.array([-1.0, np.nan]))
    with pytest.raises(ValueError, match="found 0"):
        perplexity_of(np.array([]))
    with pytest.raises(ValueError, match="empty"):
        evaluate(keras.Sequential([]), np.zeros(0, np.int32), 1, 5, prefix=EOS)


# === Interpolation ===


def mixture_nats(log_q, log_p, mu):
    q, p = np.exp(np.float64(log_q)), np.exp(np.float64(log_p))
    return -np.mean(np.log((1 - mu) * q + mu * p))


@hypothesis.given(
    log_q=strategies.lists(strategies.floats(-8, -0.01), min_size=1, max_size=20),
    seed=strategies.integers(0, 1000),
)
@hypothesis.settings(deadline=None, max_examples=60)
def test_tuned_weight_is_the_best(log_q, seed):
    rng = np.random.default_rng(seed)
    log_p = np.log(rng.uniform(0.001, 0.9, len(log_q)))
    log_p[rng.uniform(size=len(log_q)) < 0.2] = -np.inf
    mu = tune_interpolation(np.array(log_q), log_p)
    best = scipy.optimize.minimize_scalar(
        lambda m: mixture_nats(log_q, log_p, m),
        bounds=(0, 1 - 1e-9),
        method="bounded",
        options={"xatol": 1e-10},
    )
    assert 0.0 <= mu <= 1.0
    with np.errstate(divide="ignore"):
        assert mixture_nats(log_q, log_p, mu) <= best.fun + 1e-9


def test_tuned_weight_at_the_ends_and_inside():
    low, high = np.full(4, -3.0), np.full(4, -1.0)
    assert tune_interpolation(high, low) == 0.0
    assert tune_interpolation(low, high) == 1.0
    # Two halves: mu solves r / (1 + mu (r - 1)) ... = symmetric, so 1/2.
    q = np.log([0.8, 0.2])
    assert tune_interpolation(q, q[::-1]) == pytest.approx(0.5, abs=1e-12)
    # The weight of a mixture that generates the text: p on 3 of 4 tokens.
    q, p = np.log([1e-9, 1e-9, 1e-9, 0.5]), np.log([0.5, 0.5, 0.5, 1e-9])
    assert tune_interpolation(q, p) == pytest.approx(0.75, abs=1e-6)


def test_a_floor_is_tuned_for_all_tokens():
    """Word 3 of 4 is not in the text, and one of five tokens of the validation text."""
    text, valid = [0, 1, 2, 0, 1, 2, 2, 0, 1, 0], np.array([1, 3, 2, 0, 1])
    model = KneserNey(2).fit(text, 4)
    floor = tune_floor(model, valid, prefix=0)
    probs = np.exp(restricted_target_log_probs(model, valid, prefix=0))
    assert probs[1] == 0.0

    def nats(weight):
        return -np.mean(np.log((1 - weight) * probs + weight / 4))

    best = scipy.optimize.minimize_scalar(nats, bounds=(0, 1), method="bounded")
    assert 0.05 < floor < 0.95
    assert floor == pytest.approx(best.x, abs=1e-4)
    scored = restricted_target_log_probs(model.with_floor(floor), valid, prefix=0)
    assert -scored.mean() == pytest.approx(nats(floor), rel=1e-12)


def test_where_no_floor_is_best_a_little_is_left():
    text = np.array([0, 1] * 8)
    model = KneserNey(2).fit(text, 4)
    assert tune_floor(model, text, prefix=1) == 1e-5
    with pytest.raises(ValueError, match=r"must have no floor yet, found 0\.5"):
        tune_floor(model.with_floor(0.5), text, prefix=1)


def test_tuning_is_safe_in_log_space():
    log_q, log_p = np.array([-2000.0, -1.0]), np.array([-1.0, -2000.0])
    assert tune_interpolation(log_q, log_p) == pytest.approx(0.5, abs=1e-9)
    nothing = np.array([-np.inf, -np.inf])
    with pytest.raises(ValueError, match="found none among 2"):
        tune_interpolation(nothing, nothing)
    with pytest.raises(ValueError, match="found none among 0"):
        tune_interpolation(nothing[:0], nothing[:0])
    for function in (tune_interpolation, lambda q, p: interpolate(q, p, 0.5)):
        with pytest.raises(ValueError, match="`log_p` 1 is not a number"):
            function(log_q, np.array([-1.0, np.nan]))
    assert tune_interpolation(
        np.array([-np.inf, -1.0]), np.array([-np.inf, -2.0])
    ) == pytest.approx(0.0)


def test_interpolate_values_and_limits():
    log_q, log_p = np.log([0.5, 0.1]), np.array([np.log(0.25), -np.inf])
    np.testing.assert_allclose(
        np.exp(interpolate(log_q, log_p, 0.2)), [0.45, 0.08], rtol=1e-12
    )
    np.testing.assert_array_equal(interpolate(log_q, log_p, 0.0), log_q)
    np.testing.assert_array_equal(interpolate(log_q, log_p, 1.0), log_p)
    with pytest.raises(ValueError, match=r"mu.*\[0, 1\].*1\.5"):
        interpolate(log_q, log_p, 1.5)
    with pytest.raises(ValueError, match=r"axes \[N\]"):
        interpolate(log_q, log_p[:1], 0.5)


@pytest.mark.parametrize("order", [2, 3])
def test_interpolated_perplexity(model, predict, tokens, order):
    restricted = KneserNey(order=order).fit(tokens, V)
    stream = [EOS] * (order - 1) + tokens.tolist()
    weights = np.array([0.0, 0.3, 1.0])
    nats = np.zeros(3)
    for i, token in enumerate(tokens):
        short = np.array([stream[i : i + order - 1]])
        p = float(restricted.probs(short)[0, token])
        q = predict([EOS, *tokens[:i]])[token]
        nats -= np.log((1 - weights) * q + weights * p) / len(tokens)
    found = interpolated_perplexity(
        model, restricted, tokens, weights, batch_size=1, window=8, prefix=EOS
    )
    np.testing.assert_allclose([r.nats_per_token for r in found], nats, rtol=1e-5)
    alone = restricted_target_log_probs(restricted, tokens, prefix=EOS)
    assert found[2].nats_per_token == pytest.approx(-alone.mean())


def test_bits_per_byte_and_perplexity_per_word():
    log_probs = np.log([0.5, 0.25, 0.125])
    found = perplexity_of(log_probs, num_bytes=12, num_words=2)
    assert found.bits_per_byte == pytest.approx(6 / 12)
    assert found.perplexity_per_word == pytest.approx(8.0)
    assert perplexity_of(log_probs)[4:] == (None, None)
    with pytest.raises(ValueError, match="num_bytes"):
        perplexity_of(log_probs, num_bytes=0)


def test_evaluations_give_bits_per_byte(model, tokens):
    found = evaluate(model, tokens, 1, 20, prefix=EOS, num_bytes=100, num_words=10)
    nats = found.nats_per_token * len(tokens)
    assert found.bits_per_byte == pytest.approx(nats / math.log(2) / 100)
    assert found.perplexity_per_word == pytest.approx(math.exp(nats / 10))
