"""Induced models and their losses against sums written out, limits and orderings."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.objectives import imm
from tests.references import imm_reference as reference


def _samples(rng, *shape):
    return tf.math.log_softmax(rng.normal(size=shape) * 2.0)


@pytest.mark.parametrize("shape", [(7,), (3, 7), (2, 3, 7)])
@pytest.mark.parametrize("weighting", ["none", "per sample", "per position"])
def test_induced_model_is_the_weighted_mean(rng, shape, weighting):
    log_probs = _samples(rng, 4, *shape)
    log_weights = {
        "none": None,
        "per sample": rng.normal(size=4),
        "per position": rng.normal(size=(4, *shape[:-1])),
    }[weighting]
    weights = None if log_weights is None else np.exp(log_weights)
    expected = reference.induced_probs(np.exp(log_probs), weights)
    found = imm.induced_log_probs(log_probs, log_weights)
    assert found.dtype == tf.float64
    np.testing.assert_allclose(np.exp(found), expected, rtol=1e-12)


def test_loss_is_the_sum_of_equation_15(rng):
    log_probs = _samples(rng, 5, 3, 7)
    target = reference.softmax(rng.normal(size=(3, 7)))
    induced = reference.induced_probs(np.exp(log_probs), None)
    found = imm.induced_cross_entropy(target, log_probs)
    np.testing.assert_allclose(found.loss, reference.imm_loss(target, induced))
    np.testing.assert_allclose(np.exp(found.extra.induced_log_probs), induced)


def test_loss_without_batch_axis_is_a_scalar(rng):
    log_probs = _samples(rng, 5, 7)
    target = reference.softmax(rng.normal(size=7))
    assert imm.induced_cross_entropy(target, log_probs).loss.shape == []


def test_kl_divergence_is_zero_at_the_target_and_positive_elsewhere(rng):
    target = reference.softmax(rng.normal(size=(3, 7)))
    at_target = np.log(np.stack([target, target]))
    np.testing.assert_allclose(
        imm.induced_kl_divergence(target, at_target).loss, 0.0, atol=1e-14
    )
    elsewhere = imm.induced_kl_divergence(target, _samples(rng, 2, 3, 7)).loss
    assert np.all(elsewhere > 1e-3)


def test_one_sample_is_soft_cross_entropy(rng):
    logits = tf.constant(rng.normal(size=(3, 7)))
    target = reference.softmax(rng.normal(size=(3, 7)))
    expected = tf.nn.softmax_cross_entropy_with_logits(target, logits)
    log_probs = tf.math.log_softmax(logits)
    found = imm.induced_cross_entropy(target, log_probs[None]).loss
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_allclose(
        imm.noising_cross_entropy(target, log_probs).loss, expected, rtol=1e-12
    )


def test_noising_bounds_imm_from_above(rng):
    """Eq. (18) is not below Eq. (17), and equal where the samples agree."""
    log_probs = _samples(rng, 6, 50, 7)
    target = reference.softmax(rng.normal(size=(50, 7)))
    inside = imm.induced_cross_entropy(target, log_probs).loss
    outside = tf.reduce_mean(
        tf.stack([imm.noising_cross_entropy(target, q).loss for q in log_probs]), 0
    )
    assert np.all(outside > inside)
    same = tf.repeat(log_probs[:1], 6, axis=0)
    np.testing.assert_allclose(
        imm.induced_cross_entropy(target, same).loss,
        imm.noising_cross_entropy(target, log_probs[0]).loss,
        rtol=1e-12,
    )


def test_crosstalk_gradient_equals_direct_gradient(rng):
    logits = tf.constant(rng.normal(size=(6, 5, 7)) * 3.0)
    target = reference.softmax(rng.normal(size=(5, 7)))
    with tf.GradientTape() as tape:
        tape.watch(logits)
        log_probs = tf.math.log_softmax(logits)
        direct = tf.reduce_sum(imm.induced_cross_entropy(target, log_probs).loss)
    expected = tape.gradient(direct, logits)
    with tf.GradientTape() as tape:
        tape.watch(logits)
        log_probs = tf.math.log_softmax(logits)
        weights = imm.crosstalk_weights(log_probs)
        surrogate = imm.crosstalk_surrogate(
            tf.broadcast_to(target, log_probs.shape), log_probs, weights
        )
        total = tf.reduce_sum(surrogate)
    np.testing.assert_allclose(tape.gradient(total, logits), expected, atol=1e-12)
    # The value is another one: only the gradient is that of IMM.
    assert abs(float(total - direct)) > 0.1


def test_gradient_matches_differences(rng):
    point = rng.normal(size=(3, 2, 4))
    target = reference.softmax(rng.normal(size=(2, 4)))

    def loss(logits):
        induced = reference.induced_probs(reference.softmax(logits), None)
        return reference.imm_loss(target, induced).sum()

    logits = tf.constant(point)
    with tf.GradientTape() as tape:
        tape.watch(logits)
        value = imm.induced_cross_entropy(target, tf.math.log_softmax(logits)).loss
    np.testing.assert_allclose(
        tape.gradient(value, logits),
        reference.numeric_gradient(loss, point),
        atol=1e-8,
    )


def test_crosstalk_weights_sum_to_one_over_samples(rng):
    log_probs = _samples(rng, 4, 3, 7).numpy()
    log_probs[:, 0, 0] = -np.inf
    log_probs[1, 1, 1] = -np.inf
    weights = imm.crosstalk_weights(log_probs)
    np.testing.assert_allclose(tf.reduce_sum(weights, 0), 1.0, rtol=1e-12)
    np.testing.assert_allclose(weights[:, 0, 0], 0.25)
    assert weights[1, 1, 1] == 0.0


def test_target_gets_no_gradient_and_zeros_are_safe(rng):
    target = tf.constant([[0.5, 0.5, 0.0]], tf.float64)
    log_probs = tf.constant([[[np.log(0.5), np.log(0.5), -np.inf]]], tf.float64)
    with tf.GradientTape() as tape:
        tape.watch([target, log_probs])
        loss = imm.induced_cross_entropy(target, log_probs).loss
    to_target, to_model = tape.gradient(loss, [target, log_probs])
    assert to_target is None
    np.testing.assert_allclose(loss, [np.log(2.0)])
    np.testing.assert_allclose(to_model[0, 0], [-0.5, -0.5, 0.0])


def test_confident_models_neither_overflow_nor_vanish():
    logits = tf.constant([[[0.0, 300.0]], [[0.0, 310.0]]], tf.float32)
    log_probs = tf.math.log_softmax(logits)
    loss = imm.induced_cross_entropy([[1.0, 0.0]], log_probs).loss
    # log of the mean of exp(-300) and exp(-310).
    expected = 300.0 + np.log(2.0) - np.log1p(np.exp(-10.0))
    np.testing.assert_allclose(loss, [expected], rtol=1e-6)


@pytest.mark.parametrize(
    ("target", "samples", "message"),
    [
        ((3, 7), (4, 2, 7), "leading axes"),
        ((3, 6), (4, 3, 7), "axis V"),
        ((3, 7), (3, 7), "one axis more"),
        ((3, 7), (0, 3, 7), "no sample"),
    ],
)
def test_shapes_that_do_not_fit_are_named(target, samples, message):
    with pytest.raises(ValueError, match=f"induced_cross_entropy: .*{message}"):
        imm.induced_cross_entropy(tf.zeros(target), tf.zeros(samples))


def test_weights_that_do_not_fit_are_named():
    with pytest.raises(ValueError, match="induced_log_probs: axis K of `log_weights`"):
        imm.induced_log_probs(tf.zeros([3, 2, 5]), tf.zeros([4]))
    for shape in ([], [3]):
        with pytest.raises(ValueError, match=r"must have axes \[K ... V\], found"):
            imm.induced_log_probs(np.zeros(shape))
    with pytest.raises(TypeError, match="`sample_log_probs` must be floating point"):
        imm.induced_log_probs(tf.zeros([3, 2, 5], tf.int32))


@pytest.mark.parametrize("function", [imm.induced_log_probs, imm.crosstalk_weights])
def test_samples_need_an_axis_with_something_in_it(function):
    name = function.__name__
    with pytest.raises(ValueError, match=rf"{name}: .* axes \[K ... V\], found"):
        function(tf.zeros([5]))
    with pytest.raises(ValueError, match=rf"{name}: .* no sample \(K = 0\)"):
        function(tf.zeros([0, 5]))


@pytest.mark.parametrize("target", [[1, 5], [2, 1], [4, 5], [4]])
@pytest.mark.parametrize("samples", [[2, 5], [3, 2, 5]])
def test_crosstalk_targets_are_not_broadcast(target, samples):
    with pytest.raises(ValueError, match="crosstalk_surrogate: "):
        imm.crosstalk_surrogate(tf.zeros(target), tf.zeros(samples), tf.ones(samples))
