"""Log-space helpers against plain float64 arithmetic, at their edges too."""

from __future__ import annotations

import math

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf import numerics


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_log_mean_exp_is_the_log_of_the_mean(rng, axis):
    values = rng.normal(size=(3, 4, 5))
    expected = np.log(np.exp(values).mean(axis=axis))
    np.testing.assert_allclose(numerics.log_mean_exp(values, axis), expected)


def test_log_mean_exp_normalises_its_weights(rng):
    values, log_weights = rng.normal(size=(3, 4)), rng.normal(size=(3, 1)) + 50.0
    weights = np.exp(log_weights) / np.exp(log_weights).sum()
    expected = np.log((weights * np.exp(values)).sum(axis=0))
    found = numerics.log_mean_exp(values, 0, log_weights)
    np.testing.assert_allclose(found, expected)


def test_log_mean_exp_of_zeros_is_minus_infinity_without_gradient():
    values = tf.constant([[-np.inf, 0.0], [-np.inf, -np.inf]], tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(values)
        found = numerics.log_mean_exp(values, 0)
        total = tf.reduce_sum(tf.where(found > -np.inf, found, 0.0))
    np.testing.assert_allclose(found, [-np.inf, -math.log(2.0)])
    np.testing.assert_allclose(tape.gradient(total, values), [[0.0, 1.0], [0.0, 0.0]])


def test_replace_gradient_takes_value_and_gradient_from_two_places():
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = numerics.replace_gradient(tf.square(x), 5.0 * x)
    assert float(y) == 9.0
    assert float(tape.gradient(y, x)) == 5.0


def test_replace_gradient_keeps_values_beside_large_surrogates():
    value = tf.constant([0.1, 0.1, 0.1, -np.inf])
    found = numerics.replace_gradient(value, tf.constant([1e8, -1e30, np.inf, 1.0]))
    np.testing.assert_array_equal(found, tf.constant([0.1, 0.1, np.nan, -np.inf]))


def test_zero_probability_times_minus_infinity_is_zero():
    log_values = tf.constant([-np.inf, -1.0])
    with tf.GradientTape() as tape:
        tape.watch(log_values)
        product = numerics.multiply_no_nan_log(tf.constant([0.0, 0.5]), log_values)
    np.testing.assert_allclose(product, [0.0, -0.5])
    np.testing.assert_allclose(tape.gradient(product, log_values), [0.0, 0.5])


def test_casting_keeps_digits():
    double = tf.constant(0.0, tf.float64)
    assert float(numerics.cast_like(0.9, double)) == 0.9
    assert numerics.cast_like([0.1, 0.2], double)[1] == 0.2
    assert numerics.cast_like(np.float64(0.1), tf.constant(0.0)).dtype == tf.float32
    assert float(numerics.cast_like(np.int64(3), double)) == 3.0


def test_perplexity_of_a_huge_loss_is_infinite():
    assert numerics.perplexity(math.log(7.0)) == pytest.approx(7.0)
    assert numerics.perplexity(1e4) == math.inf


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_products_are_rounded_to_the_nearest(rng, dtype):
    x, kernel = (tf.cast(rng.normal(size=[n, 8]), dtype) for n in (50, 400))
    found = tf.cast(numerics.rounded_product(x, kernel), tf.float64).numpy()
    exact = tf.cast(x, tf.float64).numpy() @ tf.cast(kernel, tf.float64).numpy().T
    digits = {"bfloat16": 8, "float16": 11}[dtype]
    error = (found - exact) * np.sign(exact)
    sizes = 2.0 ** (np.floor(np.log2(np.abs(exact))) - digits + 1)
    # In units of the last digit. Cut off, the mean is -0.5.
    assert abs(np.mean(error / sizes)) < 0.05
