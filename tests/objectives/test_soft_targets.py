"""Cross-entropy of targets and of distributions: naive, sparse, half precision."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.objectives.soft_targets import (
    cross_entropy_with_soft_targets,
    linear_cross_entropy_with_soft_targets,
)
from rlm_tf.restricted.sparse_probs import SparseProbs

_N, _V, _D, _K, _E = 7, 11, 3, 2, 25


@pytest.fixture(name="case")
def _case(rng):
    """Operands in float64, and sparse distributions of unequal sums."""
    places = rng.integers(0, _N * _V, _E)
    probs = SparseProbs(
        tf.constant(rng.uniform(0, 0.5, [_N, _K])),
        tf.constant(rng.dirichlet(np.ones(_V), _K)),
        tf.constant(places // _V),
        tf.constant(places % _V),
        tf.constant(rng.uniform(0, 0.3, _E)),
    )
    operands = [rng.normal(size=shape) for shape in ([_N, _D], [_V, _D], [_V])]
    return operands, rng.integers(0, _V, _N), probs


def _naive(operands, targets, dense):
    x, kernel, bias = operands
    logits = x @ kernel.T + bias
    log_q = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    return -log_q[np.arange(_N), targets], -(dense * log_q).sum(axis=1)


def _gradients(operands, targets, dense, weights):
    """Of sum_n g_n cross-entropy_n + h_n soft_n to features, kernel and bias."""
    x, kernel, bias = operands
    logits = x @ kernel.T + bias
    q = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    g, h = (w[:, None] for w in weights)
    d_logits = g * (q - np.eye(_V)[targets])
    d_logits += h * (dense.sum(axis=1, keepdims=True) * q - dense)
    return d_logits @ kernel, d_logits.T @ x, d_logits.sum(axis=0)


def _dense(probs):
    found = probs.shares.numpy() @ probs.bases.numpy()
    np.add.at(found, (probs.rows.numpy(), probs.words.numpy()), probs.values.numpy())
    return found


def test_sparse_distributions_are_what_they_say(case):
    *_, probs = case
    np.testing.assert_allclose(probs.dense(), _dense(probs))
    np.testing.assert_allclose(probs.mass(), _dense(probs).sum(axis=1))


@pytest.mark.parametrize("kind", ["sparse", "dense"])
@pytest.mark.parametrize("linear", [True, False])
def test_values_and_gradients_by_loops(case, rng, kind, linear):
    operands, targets, probs = case
    dense = _dense(probs)
    given = probs if kind == "sparse" else tf.constant(dense)
    weights = rng.uniform(0, 1, _N), rng.uniform(0, 1, _N)
    # What counts nothing anywhere, and what counts in one loss alone.
    weights[0][:2] = 0
    weights[1][1:3] = 0
    variables = [tf.constant(value) for value in operands]
    with tf.GradientTape() as tape:
        tape.watch(variables)
        x, kernel, bias = variables
        if linear:
            found = linear_cross_entropy_with_soft_targets(
                x, kernel, bias, targets, given
            )
        else:
            logits = tf.matmul(x, kernel, transpose_b=True) + bias
            found = cross_entropy_with_soft_targets(logits, targets, given)
        total = sum(tf.reduce_sum(w * v) for w, v in zip(weights, found, strict=True))
    for value, expected in zip(found, _naive(operands, targets, dense), strict=True):
        assert value.dtype == tf.float64
        np.testing.assert_allclose(value, expected, rtol=1e-12)
    expected = _gradients(operands, targets, dense, weights)
    for gradient, wanted in zip(tape.gradient(total, variables), expected, strict=True):
        np.testing.assert_allclose(gradient, wanted, atol=1e-12)


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_half_precision_and_no_bias(case, kind):
    (x, kernel, _), targets, probs = case
    given = probs if kind == "sparse" else tf.constant(_dense(probs))
    half = [tf.cast(value, tf.bfloat16) for value in (x, kernel)]
    exact = [tf.cast(value, tf.float64) for value in half]
    results = []
    for operands in (half, exact):
        with tf.GradientTape() as tape:
            tape.watch(operands)
            found = linear_cross_entropy_with_soft_targets(
                *operands, None, targets, given
            )
            total = tf.reduce_mean(found.cross_entropy) + tf.reduce_mean(found.soft)
        gradients = tape.gradient(total, operands)
        assert [g.dtype for g in gradients] == [v.dtype for v in operands]
        results.append([*found, *(tf.cast(g, tf.float64) for g in gradients)])
    assert results[0][0].dtype == tf.float32
    for found, expected in zip(*results, strict=True):
        np.testing.assert_allclose(found, expected, atol=0.05)


def test_impossible_words_of_probability_zero_count_nothing():
    logits = tf.constant([[0.0, 1.0, -np.inf]])
    probs = tf.constant([[0.5, 0.5, 0.0]])
    with tf.GradientTape() as tape:
        tape.watch(logits)
        loss = cross_entropy_with_soft_targets(logits, [1], probs).soft
    expected = -(0.5 * np.log([1, np.e]) - 0.5 * np.log(1 + np.e)).sum()
    assert float(loss[0]) == pytest.approx(expected)
    assert np.all(np.isfinite(tape.gradient(loss, logits)))


def test_mistakes(case):
    (x, kernel, bias), targets, probs = case
    with pytest.raises(ValueError, match="axis N"):
        linear_cross_entropy_with_soft_targets(x, kernel, bias, targets[1:], probs)
    with pytest.raises(ValueError, match="axis V of `probs`"):
        cross_entropy_with_soft_targets(np.ones([2, 3]), [0, 1], np.ones([2, 4]))
    with pytest.raises(TypeError, match="must be floating point"):
        linear_cross_entropy_with_soft_targets(
            np.ones([7, 3], int), kernel, bias, targets, probs
        )
