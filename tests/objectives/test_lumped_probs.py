"""Distributions of k words and a lump: by loops, in a linear softmax, near its ends."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.objectives.lumped_probs import LumpedProbs
from rlm_tf.objectives.soft_targets import (
    cross_entropy_with_soft_targets,
    linear_cross_entropy_with_soft_targets,
)

_N, _V, _D = 6, 9, 4


def _case(rng, k):
    """Operands and targets of a linear softmax, and lumped distributions."""
    full = rng.dirichlet(np.ones(_V), _N)
    words = np.argsort(-full, axis=1)[:, :k]
    log_probs = np.log(np.take_along_axis(full, words, axis=1))
    operands = [rng.normal(size=shape) for shape in ([_N, _D], [_V, _D], [_V])]
    probs = LumpedProbs.of_words(words, tf.constant(log_probs), _V)
    return operands, rng.integers(0, _V, _N), probs


def _naive(logits, probs):
    """Returns the loss of each row and its gradient to the logits, word by word."""
    losses, slopes = np.zeros(_N), np.zeros([_N, _V])
    for n in range(_N):
        q = np.exp(logits[n]) / np.exp(logits[n]).sum()
        words, p = probs.words[n], np.exp(probs.log_probs.numpy()[n])
        others = [v for v in range(_V) if v not in words]
        rest = 1 - p.sum() if others else 0.0
        losses[n] = -(p * np.log(q[words])).sum()
        slopes[n] = q
        slopes[n, words] -= p
        if others:
            losses[n] -= rest * np.log(q[others].sum())
            slopes[n, others] -= rest * q[others] / q[others].sum()
    return losses, slopes


@pytest.mark.parametrize("k", [1, 4, _V])
@pytest.mark.parametrize("linear", [True, False])
def test_values_and_gradients_by_loops(rng, k, linear):
    operands, targets, probs = _case(rng, k)
    g, h = rng.uniform(0, 1, _N), rng.uniform(0, 1, _N)
    # What counts nothing anywhere, and what counts in one loss alone.
    g[:2] = 0
    h[1:3] = 0
    variables = [tf.constant(value) for value in operands]
    with tf.GradientTape() as tape:
        tape.watch(variables)
        x, kernel, bias = variables
        if linear:
            found = linear_cross_entropy_with_soft_targets(*variables, targets, probs)
        else:
            logits = tf.matmul(x, kernel, transpose_b=True) + bias
            found = cross_entropy_with_soft_targets(logits, targets, probs)
        total = tf.reduce_sum(g * found.cross_entropy + h * found.soft)
    logits = operands[0] @ operands[1].T + operands[2]
    losses, slopes = _naive(logits, probs)
    np.testing.assert_allclose(found.soft, losses, rtol=1e-11)
    q = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    d_logits = h[:, None] * slopes + g[:, None] * (q - np.eye(_V)[targets])
    expected = (d_logits @ operands[1], d_logits.T @ operands[0], d_logits.sum(axis=0))
    for gradient, wanted in zip(tape.gradient(total, variables), expected, strict=True):
        np.testing.assert_allclose(gradient, wanted, atol=1e-11)


def test_rows_of_every_scale(rng):
    """Those whose words outside have far more, far less and just what they should."""
    (x, kernel, bias), targets, probs = _case(rng, 4)
    for shift in (-60.0, -8.0, 0.0, 8.0, 60.0):
        own = np.full(_V, shift)
        logits = x @ kernel.T + bias + own
        np.put_along_axis(
            logits,
            probs.words,
            np.take_along_axis(logits - own, probs.words, axis=1),
            axis=1,
        )
        losses, slopes = _naive(logits, probs)
        # An identity for a kernel: the gradient to the features is that of logits.
        for share, dtype, atol in ((0.0, tf.float64, 1e-11), (0.5, tf.float32, 2e-6)):
            z = tf.constant(logits, dtype)
            own = probs.constant(dtype)
            with tf.GradientTape() as tape:
                tape.watch(z)
                found = linear_cross_entropy_with_soft_targets(
                    z, tf.eye(_V, dtype=dtype), None, targets, own
                )
                total = tf.reduce_sum(share * found.cross_entropy + found.soft)
            q = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
            expected = slopes + share * (q - np.eye(_V)[targets])
            np.testing.assert_allclose(found.soft, losses, rtol=1e-5)
            np.testing.assert_allclose(tape.gradient(total, z), expected, atol=atol)


def test_entropy_is_the_least_cross_entropy(rng):
    _, targets, probs = _case(rng, 4)
    rest = probs.rest().numpy()
    log_q = np.log(np.repeat(rest[:, None] / (_V - 4), _V, axis=1))
    np.put_along_axis(log_q, probs.words, probs.log_probs.numpy(), axis=1)
    found = cross_entropy_with_soft_targets(tf.constant(log_q), targets, probs)
    np.testing.assert_allclose(found.soft, probs.entropy(), rtol=1e-12)


@pytest.mark.parametrize("linear", [True, False])
def test_softmax_that_gives_the_lump_nothing(linear):
    # The lump has less than a float32 can tell beside the word 0.
    bias = tf.constant([200.0, 0.0, 0.0])
    probs = LumpedProbs.of_words(np.array([[0]]), tf.math.log([[0.5]]), 3)
    with tf.GradientTape() as tape:
        tape.watch(bias)
        if linear:
            found = linear_cross_entropy_with_soft_targets(
                tf.zeros([1, 2]), tf.zeros([3, 2]), bias, [0], probs
            )
        else:
            found = cross_entropy_with_soft_targets(bias[tf.newaxis], [0], probs)
    slope = tape.gradient(found.soft, bias).numpy()
    assert 40 < float(found.soft[0]) < 101
    assert np.isfinite(slope).all()
    assert slope[0] == pytest.approx(0.5)


def test_half_precision(rng):
    (x, kernel, _), targets, probs = _case(rng, 3)
    half = [tf.cast(value, tf.bfloat16) for value in (x, kernel)]
    exact = [tf.cast(value, tf.float64) for value in half]
    results = []
    for operands in (half, exact):
        with tf.GradientTape() as tape:
            tape.watch(operands)
            found = linear_cross_entropy_with_soft_targets(
                *operands, None, targets, probs
            )
            total = tf.reduce_mean(found.cross_entropy) + tf.reduce_mean(found.soft)
        gradients = tape.gradient(total, operands)
        assert [each.dtype for each in gradients] == [each.dtype for each in operands]
        results.append([*found, *(tf.cast(each, tf.float64) for each in gradients)])
    for found, expected in zip(*results, strict=True):
        np.testing.assert_allclose(found, expected, atol=0.05)


def test_mistakes(rng):
    (x, kernel, bias), targets, probs = _case(rng, 3)
    with pytest.raises(ValueError, match="axis k"):
        linear_cross_entropy_with_soft_targets(
            x, kernel, bias, targets, probs._replace(words=probs.words[:, 1:])
        )
    with pytest.raises(ValueError, match="axis N"):
        cross_entropy_with_soft_targets(
            x @ kernel.T, targets, LumpedProbs(*(each[1:] for each in probs))
        )
