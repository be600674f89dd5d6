"""Variance of Phase II's gradients: against all batches at once, ratios, mistakes."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.data import SentencePairs, contiguous_batches
from rlm_tf.evaluation import GradientVariance, gradient_variance, variance_ratio
from rlm_tf.evaluation.gradient_moments import GradientMoments, joint_moments
from rlm_tf.layers import LSTMCell, PairDiscriminator
from rlm_tf.models import BootstrappedMutualInformation, RegularizedLanguageModel
from rlm_tf.training import ResumableBatches

pytestmark = pytest.mark.eager
V = 5
TEXT = np.random.default_rng(2).integers(1, V, size=60).astype(np.int32)
TEXT[::4] = 0


def make(phase_two="raml"):
    model = RegularizedLanguageModel(V, LSTMCell(3), 1, seed=1, jit_loop=False)
    return BootstrappedMutualInformation(
        model, discriminator=PairDiscriminator(4), phase_two=phase_two, end_id=0
    )


def batches(number):
    data = ResumableBatches(
        contiguous_batches(TEXT, 2, 5, prefix=0),
        transform=SentencePairs(TEXT, 0, 4, most_tokens=5),
    )
    return list(data.dataset.take(number))


def test_moments_are_those_of_all_vectors(rng):
    vectors = rng.normal(size=(9, 4))
    parts = [GradientMoments() for _ in range(3)]
    for part, own in zip(parts, np.split(vectors, [2, 5]), strict=True):
        for vector in own:
            part.add(vector)
    whole = joint_moments(parts)
    np.testing.assert_allclose(whole.mean, vectors.mean(0))
    np.testing.assert_allclose(whole.variance, vectors.var(0, ddof=1))
    assert whole.signal_and_noise()[1] == pytest.approx(
        np.sqrt(vectors.var(0, ddof=1).sum())
    )


def test_it_is_that_of_the_term_alone():
    bmi = make()
    bmi.set_phase(1)
    elements = batches(4)
    found = gradient_variance(bmi, elements)
    variables = [v.value for v in bmi.model.trainable_variables]
    gradients = []
    for x, y, weights in elements:
        with tf.GradientTape() as tape:
            term = bmi.objective_terms(x, y, weights, True)["raml"]
            share = tf.stop_gradient(term.weights)
            loss = tf.reduce_sum(term.loss * share) / tf.reduce_sum(share)
        own = tape.gradient(loss, variables)
        flat = [np.ravel(tf.convert_to_tensor(gradient)) for gradient in own]
        gradients.append(np.concatenate(flat))
    np.testing.assert_allclose(found.mean, np.mean(gradients, axis=0), atol=1e-6)
    variance = np.var(gradients, axis=0, ddof=1)
    np.testing.assert_allclose(found.variance, variance, rtol=1e-3, atol=1e-9)
    assert found.batches == 4


def test_policy_gradient_differs_from_draw_to_draw():
    bmi = make("rl")
    bmi.set_phase(1)
    found = gradient_variance(bmi, batches(1) * 3)
    assert found.noise > 0


def test_ratios_of_scale_go_away():
    mean, variance = np.array([3.0, 4.0, 0.0]), np.array([1.0, 2.0, 0.0])
    one = GradientVariance(mean, variance, 5.0, np.sqrt(3), 10)
    ten = GradientVariance(10 * mean, 100 * variance, 50.0, np.sqrt(300), 10)
    found = variance_ratio(ten, one)
    np.testing.assert_allclose(found.raw, [100, 100])
    np.testing.assert_allclose(found.scaled, [1, 1])


def test_noise_of_means_is_no_signal():
    rng = np.random.default_rng(0)
    mean = np.zeros(400)
    mean[0] = 1.0
    # Of one expectation; the mean of 20 draws of the second is mostly noise.
    found = []
    for deviation in (0.01, 0.4):
        moments = GradientMoments()
        for _ in range(20):
            moments.add(mean + deviation * rng.normal(size=400))
        found.append(
            GradientVariance(
                moments.mean, moments.variance, *moments.signal_and_noise(), 20
            )
        )
    quiet, noisy = found
    assert np.linalg.norm(noisy.mean) > 1.5
    median = np.median(variance_ratio(noisy, quiet).scaled)
    assert 0.6 * 40**2 < median < 1.6 * 40**2
    silent = noisy._replace(signal=0.0)
    assert np.isnan(variance_ratio(silent, quiet).scaled).all()


def test_mistakes():
    with pytest.raises(ValueError, match=r"be in it \(`set_phase\(1\)`\)"):
        gradient_variance(make(), batches(2))
    bmi = make()
    bmi.set_phase(1)
    with pytest.raises(ValueError, match="at least two batches, found 1"):
        gradient_variance(bmi, batches(1))
    one, two = (GradientVariance(np.zeros(n), np.ones(n), 1, 1, 2) for n in (1, 2))
    with pytest.raises(ValueError, match="must be of the same parameters"):
        variance_ratio(one, two)
