"""Log-probabilities of targets, computed slice by slice of the vocabulary."""

from __future__ import annotations

import math

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.evaluation.log_probs import log_softmax_at
from rlm_tf.numerics import rounded_product
from rlm_tf.objectives import linear_log_probs as module
from rlm_tf.objectives.linear_log_probs import linear_log_probs

N, D, V = 6, 3, 11


@pytest.fixture(params=[1, 4, 11, 8192], autouse=True)
def words(request, monkeypatch):
    monkeypatch.setattr(module, "_WORDS", request.param)


def operands(rng, dtype="float64", scale=1.0):
    return (
        tf.constant(rng.normal(size=(N, D)) * scale, dtype),
        tf.constant(rng.normal(size=(V, D)), dtype),
        tf.constant(rng.normal(size=V), dtype),
    )


@pytest.mark.parametrize("use_bias", [True, False])
def test_equals_the_log_of_a_quotient(rng, use_bias):
    x, kernel, bias = operands(rng)
    targets = np.array([0, 10, 10, 4, 3, 7])
    found = linear_log_probs(x, kernel, bias if use_bias else None, targets)
    scores = np.exp(x.numpy() @ kernel.numpy().T + use_bias * bias.numpy())
    expected = [
        np.log(row[y] / row.sum()) for row, y in zip(scores, targets, strict=True)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_targets_are_rounded_as_the_other_words_are(rng, dtype):
    """One word takes all: its log-probability is 0, and never above."""
    x, kernel, bias = operands(rng, dtype, 30.0)
    logits = tf.nn.bias_add(rounded_product(x, kernel), bias)
    targets = tf.argmax(logits, axis=1)
    found = linear_log_probs(x, kernel, bias, targets)
    assert found.dtype == tf.float32 and np.all(found <= 1e-6)
    np.testing.assert_allclose(found, log_softmax_at(logits, targets), atol=1e-5)


def test_words_that_must_not_come_and_large_logits(rng):
    x, kernel, _ = operands(rng, "float32", 1e4)
    bias = tf.constant([-math.inf] * 5 + [0.0] * 6)
    found = linear_log_probs(x, kernel, bias, tf.constant([0, 4, 5, 6, 7, 8])).numpy()
    assert np.all(np.isneginf(found[:2])) and np.all(np.isfinite(found[2:]))
    none = linear_log_probs(x[:0], kernel, bias, tf.zeros([0], tf.int32))
    assert none.shape == (0,)


def test_mistakes_are_named(rng):
    x, kernel, bias = operands(rng)
    with pytest.raises(ValueError, match="linear_log_probs: axis D of `kernel` is 2"):
        linear_log_probs(x, kernel[:, :2], bias, tf.zeros([N], tf.int32))
    with pytest.raises(TypeError, match="`features` must be floating point"):
        linear_log_probs(tf.ones([N, D], tf.int32), kernel, bias, tf.zeros([N]))
