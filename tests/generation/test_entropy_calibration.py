"""Entropy calibration against probabilities computed prefix by prefix."""

from __future__ import annotations

import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.generation import calibrate, fit_calibration, generate
from rlm_tf.layers import MogrifierLSTMCell
from rlm_tf.models import RegularizedLanguageModel

V, EOS = 7, 2


@pytest.fixture(scope="module")
def model():
    options = {
        "kernel_initializer": keras.initializers.RandomNormal(stddev=0.8, seed=1),
        "recurrent_initializer": keras.initializers.RandomNormal(stddev=0.8, seed=2),
    }
    model = RegularizedLanguageModel(
        V, MogrifierLSTMCell(5, 2, **options), 1, jit_loop=False, seed=4
    )
    # So sure of itself that entropies differ.
    model.embedding.embeddings.assign(5 * model.embedding.embeddings)
    return model


def next_probs(model, prefix):
    return tf.nn.softmax(model(tf.constant([prefix]))[0, -1]).numpy()


def naive(model, prefix, strength):
    """`p(w) exp(-a H(next | w))`, one prefix after the other."""
    probs = next_probs(model, prefix)
    entropies = []
    for w in range(V):
        after = next_probs(model, [*prefix, w])
        entropies.append(-np.sum(after * np.log(after)))
    weights = probs * np.exp(-strength * np.array(entropies))
    return weights / weights.sum()


def run(model, prefix, strength, candidates):
    features, states = model.forward(tf.constant([prefix]), model.zero_states(1))
    logits = model.output_logits(features)[:, -1]
    changed = calibrate(logits, states, model, strength, candidates)
    return tf.nn.softmax(changed).numpy()[0]


@pytest.mark.parametrize("strength", [-0.7, 0.0, 1.3])
def test_with_all_tokens_it_is_the_formula(model, strength):
    for prefix in ([EOS], [EOS, 3, 1, 5]):
        np.testing.assert_allclose(
            run(model, prefix, strength, V), naive(model, prefix, strength), rtol=1e-4
        )


def test_few_candidates_leave_the_others_in_proportion(model):
    prefix = [EOS, 4]
    found, plain = run(model, prefix, 1.3, 3), next_probs(model, prefix)
    others = np.argsort(-plain)[3:]
    ratio = found[others] / plain[others]
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-4)
    # Among candidates the formula holds.
    best, exact = np.argsort(-plain)[:3], naive(model, prefix, 1.3)
    np.testing.assert_allclose(
        found[best] / found[best].sum(), exact[best] / exact[best].sum(), rtol=1e-4
    )


@pytest.mark.landing
def test_fit_finds_the_best_strength(model):
    text = np.random.default_rng(3).integers(V, size=12)
    prefixes = [[EOS, *text[:t].tolist()] for t in range(len(text))]

    def nats(strength):
        probs = [naive(model, prefix, strength) for prefix in prefixes]
        return -np.mean([np.log(p[w]) for p, w in zip(probs, text, strict=True)])

    fit = fit_calibration(model, text, prefix=EOS, candidates=V)
    assert fit.num_tokens == len(text)
    np.testing.assert_allclose(fit.nats_before, nats(0.0), rtol=1e-5)
    np.testing.assert_allclose(fit.nats_after, nats(fit.strength), rtol=1e-5)
    around = [nats(fit.strength + step) for step in (-0.3, 0.3)]
    assert fit.nats_after < min(*around, fit.nats_before)


@pytest.mark.landing
def test_generation_draws_from_the_calibrated_distribution(model):
    prompts = np.tile([EOS, 3], (4000, 1))
    drawn = generate(
        model, prompts, 1, seed=5, calibration=1.3, candidates=V
    ).flat_values.numpy()
    counts = np.bincount(drawn, minlength=V)
    expected = 4000 * naive(model, [EOS, 3], 1.3)
    deviation = np.abs(counts - expected) / np.sqrt(expected)
    assert deviation.max() < 4


def test_any_keras_model_is_calibrated():
    model = keras.Sequential([keras.layers.Embedding(V, 4), keras.layers.Dense(V)])
    text = np.random.default_rng(0).integers(V, size=20)
    fit = fit_calibration(model, text, prefix=EOS, candidates=3, context_length=8)
    assert fit.nats_after <= fit.nats_before


def test_mistakes_are_named(model):
    with pytest.raises(ValueError, match="`tokens` is empty"):
        fit_calibration(model, np.zeros(0, np.int32), prefix=EOS)
    with pytest.raises(ValueError, match="`candidates` must be an integer >= 1"):
        fit_calibration(model, np.array([1]), prefix=EOS, candidates=0)
    with pytest.raises(ValueError, match=rf"`tokens` must be ids in \[0, {V}\)"):
        fit_calibration(model, np.array([1, V]), prefix=EOS)
    with pytest.raises(ValueError, match=rf"`prefix` must be ids in \[0, {V}\)"):
        fit_calibration(model, np.array([1]), prefix=-1)
    assert generate(
        model, tf.zeros([0, 2], tf.int32), 3, seed=1, calibration=0.5
    ).shape == (0, None)
    with pytest.raises(ValueError, match="`calibration` must be a scalar, found"):
        generate(model, [[1], [2]], 2, seed=1, calibration=[0.1, 0.2])


def test_strength_is_finite_and_bounded(model):
    """Times an entropy, 3e38 is infinite, and then no token can be drawn."""
    prompts = tf.constant([[EOS, 1]])

    @tf.function(autograph=False)
    def in_graph(calibration: tf.Tensor) -> tf.Tensor:
        new = generate(model, prompts, 1, seed=1, calibration=calibration)
        return new.flat_values

    for strength in (3e38, -1.1e6, math.inf, math.nan):
        message = r"`calibration` must lie in \[-1e\+06, 1e\+06\]"
        with pytest.raises(ValueError, match=message):
            generate(model, prompts, 1, seed=1, calibration=strength)
        with pytest.raises(ValueError, match="`strength` must lie in"):
            calibrate(tf.zeros([1, V]), [], model, strength, 2)
        message = r"calibration must be in \[-1e\+06, 1e\+06\], found"
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            in_graph(tf.constant(strength))
