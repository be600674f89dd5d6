"""Kernel weights of neighbours, and the induced loss of two labels."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.objectives.binary import induced_binary_cross_entropy
from rlm_tf.objectives.imm import induced_cross_entropy
from rlm_tf.objectives.neighbors import neighbor_log_weights

# === Weights ===


def test_weights_by_loops(rng):
    runs, points, samples, features = 2, 3, 4, 2
    x = rng.normal(size=(runs, points, features))
    others = rng.normal(size=(runs, samples, features))
    alphas, counts = np.array([0.5, 2.0]), rng.random((runs, samples))
    counts[1, 2] = 0
    found = neighbor_log_weights(x, others, alphas, counts).numpy()
    assert found.shape == (samples, runs, points)
    for k in range(samples):
        for r in range(runs):
            for n in range(points):
                distance = sum(
                    abs(others[r, k, i] - x[r, n, i]) for i in range(features)
                )
                weight = counts[r, k] * np.exp(-alphas[r] * distance)
                np.testing.assert_allclose(np.exp(found[k, r, n]), weight, rtol=1e-12)


def test_no_leading_axes_and_no_bandwidth(rng):
    x = rng.normal(size=(3, 1))
    np.testing.assert_array_equal(neighbor_log_weights(x, x, 0.0), np.zeros((3, 3)))
    found = neighbor_log_weights(x, x, 1.0)
    np.testing.assert_allclose(found, -np.abs(x - x[:, 0]), rtol=1e-12)


def test_mistaken_features():
    with pytest.raises(ValueError, match="axis L of `sample_short_features` is 1"):
        neighbor_log_weights(np.zeros((3, 2)), np.zeros((3, 1)), 1.0)
    with pytest.raises(TypeError, match="`short_features` must be floating point"):
        neighbor_log_weights(np.zeros((3, 1), int), np.zeros((3, 1)), 1.0)


# === Two labels ===


def _by_log_space(targets, logits, weights):
    samples = tf.stack(
        [tf.math.log_sigmoid(-logits), tf.math.log_sigmoid(logits)], axis=-1
    )
    both = np.stack([1 - targets, targets], axis=-1)
    return induced_cross_entropy(both, samples, np.log(weights))


@pytest.mark.parametrize("scale", [1.0, 15.0])
def test_value_and_gradient_are_those_in_log_space(rng, scale):
    logits = tf.constant(rng.normal(size=(5, 2, 3)) * scale)
    targets = rng.random((2, 3))
    targets[0, :2] = 0.0, 1.0
    weights = rng.dirichlet(np.ones(5), size=(2, 3)).transpose(2, 0, 1)
    upstream = rng.normal(size=(2, 3))
    results = []
    for function in (induced_binary_cross_entropy, _by_log_space):
        with tf.GradientTape() as tape:
            tape.watch(logits)
            loss, extra = function(targets, logits, weights)
        gradient = tape.gradient(loss, logits, output_gradients=upstream)
        results.append((loss, gradient, extra.induced_log_probs))
    for ours, reference in zip(*results, strict=True):
        np.testing.assert_allclose(ours, reference, rtol=1e-10, atol=1e-13)


def test_certain_predictions_stay_finite():
    logits = tf.constant([[1e4, -1e4, 500.0]])
    with tf.GradientTape() as tape:
        tape.watch(logits)
        loss = induced_binary_cross_entropy(
            [0.0, 1.0, 0.5], logits, tf.ones_like(logits)
        ).loss
    # Logits are cut off at 80.
    np.testing.assert_allclose(loss, [80.0, 80.0, 40.0], rtol=1e-5)
    assert np.all(np.isfinite(tape.gradient(loss, logits)))


def test_small_probabilities_keep_their_digits():
    """In single precision, where one minus a sigmoid would be zero."""
    logits = tf.constant([[30.0], [31.0]])
    loss = induced_binary_cross_entropy([0.0], logits, [[0.5], [0.5]]).loss
    expected = -np.log((np.exp(-30.0) + np.exp(-31.0)) / 2)
    np.testing.assert_allclose(loss, [expected], rtol=1e-6)


def test_mistaken_shapes():
    with pytest.raises(ValueError, match="induced_binary_cross_entropy"):
        induced_binary_cross_entropy(np.zeros(3), np.zeros((2, 4)), np.zeros((2, 4)))
    with pytest.raises(ValueError, match="induced_binary_cross_entropy"):
        induced_binary_cross_entropy(np.zeros(4), np.zeros((2, 4)), np.zeros((3, 4)))
