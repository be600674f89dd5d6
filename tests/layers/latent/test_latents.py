"""Latents: densities by hand, draws that have them, priors that learn."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.layers import CategoricalLatents, NormalLatents

_FEATURES = np.random.default_rng(1).normal(size=(3, 5)).astype(np.float32)


def test_normal_densities_and_draws_by_hand():
    latents = NormalLatents(2, seed=1)
    parameters = latents(_FEATURES)
    mean, variance = parameters["mean"].numpy(), np.exp(parameters["log_variance"])
    z = latents.sample(parameters, 4000, keras.random.SeedGenerator(2)).numpy()
    assert z.shape == (4000, 3, 2)
    error = 4 / np.sqrt(4000)
    np.testing.assert_array_less(np.abs(z.mean(0) - mean), error * np.sqrt(variance))
    np.testing.assert_allclose(z.var(0), variance, rtol=4 * np.sqrt(2 / 4000))
    expected = -0.5 * ((z - mean) ** 2 / variance + np.log(2 * np.pi * variance)).sum(
        -1
    )
    found = latents.posterior(parameters).log_prob(z)
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-4)
    expected = -0.5 * (z**2 + np.log(2 * np.pi)).sum(-1)
    np.testing.assert_allclose(latents.prior().log_prob(z), expected, rtol=1e-5)
    kl = 0.5 * (variance + mean**2 - 1 - np.log(variance)).sum(-1)
    found = latents.posterior(parameters).kl_divergence(latents.prior())
    np.testing.assert_allclose(found, kl, rtol=1e-5)


def test_categorical_densities_and_draws_by_hand():
    latents = CategoricalLatents(2, 3, seed=1)
    parameters = latents(_FEATURES * 2)
    logits = parameters["logits"].numpy()
    probs = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    z = latents.sample(parameters, 4000, keras.random.SeedGenerator(2)).numpy()
    assert z.shape == (4000, 3, 2, 3)
    np.testing.assert_array_equal(z.sum(-1), 1)
    error = 4 * np.sqrt(probs * (1 - probs) / 4000)
    np.testing.assert_array_less(np.abs(z.mean(0) - probs), error + 1e-6)
    # Latents of an example, and examples, are independent.
    joint = np.einsum("kbi,kbj->bij", z[:, :, 0], z[:, :, 1]) / 4000
    product = np.einsum("bi,bj->bij", probs[:, 0], probs[:, 1])
    np.testing.assert_allclose(joint, product, atol=0.035)
    expected = (z * np.log(probs)).sum((-1, -2))
    found = latents.posterior(parameters).log_prob(z)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    np.testing.assert_allclose(latents.prior().log_prob(z), -2 * np.log(3), rtol=1e-6)
    assert latents.entropy == pytest.approx(2 * np.log(3))


@pytest.mark.parametrize("make", [NormalLatents, CategoricalLatents])
def test_trainable_priors_start_as_the_fixed_ones_and_have_gradients(make):
    fixed, learnt = (make(2, seed=1, trainable_prior=t) for t in (False, True))
    parameters = learnt(_FEATURES)
    fixed(_FEATURES)
    z = learnt.sample(parameters, 5, keras.random.SeedGenerator(2))
    with tf.GradientTape() as tape:
        found = learnt.prior().log_prob(z)
    np.testing.assert_allclose(found, fixed.prior().log_prob(z), rtol=1e-6)
    own = [v for v in learnt.trainable_variables if "prior" in v.name]
    assert len(own) == (2 if make is NormalLatents else 1)
    assert len(learnt.trainable_variables) == len(fixed.trainable_variables) + len(own)
    assert all(np.any(g != 0) for g in tape.gradient(found, own))


def test_seeds_repeat_and_differ():
    latents = CategoricalLatents(4, 5)
    parameters = latents(_FEATURES)
    first, again = (
        latents.sample(parameters, 3, keras.random.SeedGenerator(7)) for _ in range(2)
    )
    np.testing.assert_array_equal(first, again)
    generator = keras.random.SeedGenerator(7)
    latents.sample(parameters, 3, generator)
    assert np.any(latents.sample(parameters, 3, generator) != first)


def test_draws_carry_gradients_only_where_they_may():
    for latents, expected in (
        (NormalLatents(2), True),
        (CategoricalLatents(2, 3), False),
    ):
        features = tf.constant(_FEATURES)
        with tf.GradientTape() as tape:
            tape.watch(features)
            z = latents.sample(latents(features), 2, keras.random.SeedGenerator(1))
        assert (tape.gradient(z, features) is not None) == expected
        assert latents.is_reparameterised == expected


def test_latents_between_two():
    normal = NormalLatents(2)
    first, last = np.array([[0.0, 1.0]]), np.array([[4.0, 1.0]])
    shares = tf.constant([0.0, 0.25, 1.0], tf.float64)
    found = normal.between(tf.constant(first), tf.constant(last), shares)
    np.testing.assert_allclose(found, [[[0, 1], [1, 1], [4, 1]]])
    categorical = CategoricalLatents(5, 3)
    codes = np.array([[0, 1, 2, 0, 0], [1, 1, 0, 2, 1]])
    first, last = (np.eye(3, dtype=np.float32)[row][np.newaxis] for row in codes)
    shares = tf.linspace(0.0, 1.0, 5)
    found = categorical.between(tf.constant(first), tf.constant(last), shares)
    assert found.shape == (1, 5, 5, 3)
    # Four differ, and change at one share each; the second is the same.
    np.testing.assert_array_equal(
        np.argmax(found[0], axis=-1),
        [[0, 1, 2, 0, 0], [1, 1, 2, 0, 0], [1, 1, 0, 0, 0], [1, 1, 0, 2, 0], codes[1]],
    )
    same = categorical.between(tf.constant(last), tf.constant(last), shares)
    np.testing.assert_array_equal(same[0], np.repeat(last, 5, axis=0))


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="NormalLatents: `size`"):
        NormalLatents(0)
    with pytest.raises(ValueError, match="CategoricalLatents: `num_categories`"):
        CategoricalLatents(2, 1)
