"""The fused cross-entropy against TensorFlow's, and where floating point ends."""

from __future__ import annotations

import math

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.objectives.cross_entropy import linear_cross_entropy
from rlm_tf.objectives.recomputed_cross_entropy import recomputed_cross_entropy

N, D, V = 7, 3, 5


def operands(rng, dtype="float64", scale=1.0):
    return (
        tf.constant(rng.normal(size=(N, D)) * scale, dtype),
        tf.constant(rng.normal(size=(V, D)), dtype),
        tf.constant(rng.normal(size=V), dtype),
    )


def plain(features, kernel, bias, targets):
    """The same loss from logits and TensorFlow's own operation."""
    logits = tf.matmul(features, kernel, transpose_b=True)
    logits = logits if bias is None else logits + bias
    return tf.nn.sparse_softmax_cross_entropy_with_logits(targets, logits)


def value_and_gradients(function, arguments, targets, upstream):
    sources = [argument for argument in arguments if argument is not None]
    with tf.GradientTape() as tape:
        tape.watch(sources)
        loss = function(*arguments, targets)
        total = tf.reduce_sum(loss * tf.cast(upstream, loss.dtype))
    return [loss, *tape.gradient(total, sources)]


def fused(*arguments):
    return linear_cross_entropy(*arguments).loss


@pytest.mark.parametrize("jit", [None, True])
@pytest.mark.parametrize("use_bias", [True, False])
def test_value_and_gradient_equal_plain_operations(rng, use_bias, jit):
    features, kernel, bias = operands(rng)
    arguments = (features, kernel, bias if use_bias else None)
    # Two positions share a target, one has no upstream gradient.
    targets = tf.constant([0, 4, 4, 1, 2, 3, 0])
    upstream = tf.constant([0.5, -1.0, 2.0, 0.0, 1.0, 3.0, 0.25])
    run = tf.function(
        lambda: value_and_gradients(fused, arguments, targets, upstream),
        jit_compile=jit,
    )
    expected = value_and_gradients(plain, arguments, targets, upstream)
    for a, e in zip(run(), expected, strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-10, atol=1e-12)


def test_two_types_by_hand():
    """p = (1/4, 3/4): loss log 4, gradient of the bias (p - onehot)."""
    features = tf.constant([[1.0]])
    kernel = tf.constant([[0.0], [math.log(3.0)]])
    bias = tf.zeros([2])
    loss, d_features, d_kernel, d_bias = value_and_gradients(
        fused, (features, kernel, bias), tf.constant([0]), tf.ones([1])
    )
    np.testing.assert_allclose(loss, [math.log(4.0)], rtol=1e-6)
    np.testing.assert_allclose(d_bias, [-0.75, 0.75], rtol=1e-6)
    np.testing.assert_allclose(d_kernel, [[-0.75], [0.75]], rtol=1e-6)
    np.testing.assert_allclose(d_features, [[0.75 * math.log(3.0)]], rtol=1e-6)


def test_extra_holds_partition_and_target_logits(rng):
    features, kernel, bias = operands(rng)
    targets = tf.constant([0, 1, 2, 3, 4, 0, 1])
    output = linear_cross_entropy(features, kernel, bias, targets)
    logits = features.numpy() @ kernel.numpy().T + bias.numpy()
    np.testing.assert_allclose(
        output.extra.log_partition, np.log(np.exp(logits).sum(1)), rtol=1e-12
    )
    np.testing.assert_allclose(
        output.extra.target_logits, logits[np.arange(N), targets], rtol=1e-12
    )


def test_enormous_logits_stay_finite(rng):
    features, kernel, bias = operands(rng, "float32", scale=1e6)
    targets = tf.constant([0, 1, 2, 3, 4, 0, 1])
    arguments = (features, kernel, bias)
    actual = value_and_gradients(fused, arguments, targets, tf.ones([N]))
    expected = value_and_gradients(plain, arguments, targets, tf.ones([N]))
    for a, e in zip(actual, expected, strict=True):
        assert np.all(np.isfinite(a))
        np.testing.assert_allclose(a, e, rtol=1e-4, atol=1.0)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_gives_single_precision_losses(rng, dtype):
    arguments = operands(rng, dtype)
    single = [tf.cast(argument, tf.float32) for argument in arguments]
    targets = tf.constant([0, 1, 2, 3, 4, 0, 1])
    actual = value_and_gradients(fused, arguments, targets, tf.ones([N]))
    expected = value_and_gradients(plain, single, targets, tf.ones([N]))
    assert [a.dtype.name for a in actual] == ["float32", dtype, dtype, dtype]
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_allclose(tf.cast(a, tf.float32), e, rtol=0.05, atol=0.05)


def test_no_gradient_through_extra(rng):
    features, kernel, bias = operands(rng)
    with tf.GradientTape() as tape:
        tape.watch(features)
        extra = linear_cross_entropy(
            features, kernel, bias, tf.zeros([N], "int32")
        ).extra
        total = tf.add_n([tf.reduce_sum(value) for value in extra])
    assert tape.gradient(total, features) is None


def test_wrong_shapes_and_types_are_named(rng):
    features, kernel, bias = operands(rng)
    targets = tf.zeros([N], tf.int32)
    with pytest.raises(ValueError, match="linear_cross_entropy: axis N of"):
        linear_cross_entropy(features, kernel, bias, targets[:-1])
    with pytest.raises(ValueError, match="axis V of `bias` is 4, expected 5"):
        linear_cross_entropy(features, kernel, bias[:-1], targets)
    with pytest.raises(TypeError, match="`features` must be floating point"):
        linear_cross_entropy(tf.cast(features, tf.int32), kernel, bias, targets)


# === Several softmaxes, logits computed twice ===


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("with_bias", [True, False])
def test_recomputed_parts_equal_parts_one_by_one(rng, dtype, with_bias):
    parts = 3
    wide = "float64" if dtype == "float64" else "float32"
    x = tf.constant(rng.normal(size=(parts, N, D)), dtype)
    kernel, bias = (tf.constant(rng.normal(size=s), dtype) for s in ((V, D), (V,)))
    targets = tf.constant([0, 1, 2, 3, 4, 0, 1])
    upstream = tf.constant(rng.normal(size=(parts, N)), wide)
    operands = (x, kernel, bias) if with_bias else (x, kernel)

    def value_and_slopes(function):
        with tf.GradientTape() as tape:
            tape.watch(operands)
            given = (*operands, None) if len(operands) == 2 else operands
            losses = function(*given, targets)
            total = tf.reduce_sum(losses * upstream)
        return [losses, *tape.gradient(total, operands)]

    def one_by_one(x, *others):
        return tf.stack([linear_cross_entropy(part, *others).loss for part in x])

    for traced in (False, True):
        function = value_and_slopes
        if traced:
            function = tf.function(value_and_slopes, reduce_retracing=True)
        actual = function(recomputed_cross_entropy)
        expected = value_and_slopes(one_by_one)
        tolerance = {"float64": 1e-12, "float32": 1e-5, "bfloat16": 0.03}[dtype]
        for a, e in zip(actual, expected, strict=True):
            assert a.dtype == e.dtype and a.shape == e.shape
            a, e = tf.cast(a, wide), tf.cast(e, wide)
            np.testing.assert_allclose(a, e, rtol=tolerance, atol=tolerance)


def test_recomputed_parts_name_what_does_not_fit(rng):
    features, kernel, bias = operands(rng)
    with pytest.raises(ValueError, match="recomputed_cross_entropy: axis N of"):
        recomputed_cross_entropy(
            features[tf.newaxis], kernel, bias, tf.zeros([N - 1], tf.int32)
        )
    with pytest.raises(ValueError, match=r"`features` must be \[P, N, D\]"):
        recomputed_cross_entropy(features, kernel, bias, tf.zeros([N], tf.int32))
