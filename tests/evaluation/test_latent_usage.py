"""Evaluation of latent-variable models, exact where latents can be enumerated."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.evaluation import latent_usage, quantised_usage
from rlm_tf.layers import SymbolDecoder, SymbolEncoder, VectorQuantizer
from rlm_tf.models import VectorQuantizedVAE
from tests.models.latent.vae_fixtures import (
    SENTENCES,
    SYMBOLS,
    sentence_model,
    symbol_model,
)

# Tracing takes longer than the few steps of most tests.
pytestmark = pytest.mark.eager

_ALL = np.arange(SYMBOLS, dtype=np.int32)


def _enumerated(model, x):
    """-ln p(x) and KL(p(z|x) || p(z)) of each example, over all nine latents."""
    codes = np.array(list(itertools.product(range(3), repeat=2)))
    z = np.eye(3, dtype=np.float32)[codes][:, None].repeat(len(x), axis=1)
    log_p_z = -2 * np.log(3)
    likelihood = model.decoder(z, x).numpy().astype(np.float64)
    joint = likelihood + log_p_z
    evidence = np.log(np.exp(joint).sum(axis=0))
    posterior = np.exp(joint - evidence)
    return -evidence, (posterior * (likelihood - evidence)).sum(axis=0)


@pytest.mark.parametrize(
    ("make", "x"), [(symbol_model, _ALL), (sentence_model, SENTENCES)]
)
def test_many_samples_give_the_exact_numbers(make, x):
    model = make("vimco")
    for variable in model.trainable_variables:
        variable.assign(variable * 1.5)
    nll, kl = _enumerated(model, x)
    found = latent_usage(model, [x[:2], x[2:]], num_samples=3000, chunk=1000)
    assert found.nll == pytest.approx(nll.mean(), abs=0.02)
    assert found.usage == pytest.approx(kl.mean(), abs=0.03)
    assert kl.mean() > 0.02
    assert found.distortion == pytest.approx(found.nll - found.usage)
    parameters = model(x)
    expected = model.analytic_kl(parameters).numpy().mean()
    assert found.representational_kl == pytest.approx(expected, rel=1e-5)
    assert found.num_examples == len(x)
    assert 1 < found.effective_samples <= 3000
    if make is sentence_model:
        assert found.num_tokens == (SENTENCES >= 0).sum()
        ratio = found.num_examples / found.num_tokens
        assert found.per_token().nll == pytest.approx(found.nll * ratio)
        assert found.perplexity == pytest.approx(np.exp(found.nll * ratio))
    else:
        assert found.num_tokens == len(x)


@pytest.mark.graph
def test_empty_batches_count_nothing():
    found, expected = (
        latent_usage(symbol_model(), batches, num_samples=5)
        for batches in ([_ALL, _ALL[:0]], [_ALL])
    )
    assert found == expected and np.isfinite(found).all()


def test_batches_are_those_of_fit():
    expected = latent_usage(symbol_model(), [_ALL], num_samples=5)
    for batch in ((_ALL,), (_ALL, np.zeros(SYMBOLS)), (_ALL, None, None)):
        assert latent_usage(symbol_model(), [batch], num_samples=5) == expected
    with pytest.raises(ValueError, match="leave the weights of `batches` out"):
        latent_usage(symbol_model(), [(_ALL, None, np.ones(SYMBOLS))])
    with pytest.raises(ValueError, match=r"found one array of shape \[7\]; put"):
        latent_usage(symbol_model(), _ALL)


@pytest.mark.parametrize("estimator", ["dreg", "vimco"])
def test_collapsed_latents_are_not_active(estimator):
    model = symbol_model(estimator)
    model(_ALL)
    before = latent_usage(model, [_ALL], num_samples=50)
    # Its draws are its own, and come again.
    assert latent_usage(model, [_ALL], num_samples=50) == before
    assert before.active_units == model.latents.event_shape[0]
    for variable in model.latents.trainable_variables:
        variable.assign(tf.zeros_like(variable))
    for variable in model.decoder.hidden[0].trainable_variables:
        variable.assign(tf.zeros_like(variable))
    found = latent_usage(model, [_ALL], num_samples=50)
    assert found.active_units == 0
    assert found.usage == pytest.approx(0.0, abs=1e-5)
    assert found.representational_kl == pytest.approx(0.0, abs=1e-6)
    assert found.effective_samples == pytest.approx(50, rel=1e-4)


def test_normal_latents_are_active_from_a_variance_of_a_hundredth_on():
    model = symbol_model("dreg")
    head = model.latents.mean_head
    kernel = head.kernel.numpy()
    deviations = np.std(model(_ALL)["mean"], axis=0)
    head.kernel.assign(kernel * np.sqrt([0.009, 0.011, 0.0, 0.05]) / deviations)
    assert latent_usage(model, [_ALL[:3], _ALL[3:]], num_samples=2).active_units == 2


def test_categorical_latents_are_active_from_a_hundredth_of_a_nat_on():
    model = symbol_model("vimco")
    head = model.latents.trainable_variables[0]
    kernel = head.numpy()

    def information(scale):
        """Of each of both latents with x."""
        head.assign(kernel * scale)
        probs = tf.nn.softmax(model(_ALL)["logits"]).numpy()
        mean = probs.mean(axis=0)
        return (probs * np.log(probs / mean)).sum(axis=-1).mean(axis=0)

    found = []
    for scale in np.linspace(0.0, 1.0, 11):
        # Not where single precision could decide.
        expected = information(scale)
        if np.all(np.abs(expected - 0.01) > 1e-4):
            usage = latent_usage(model, [_ALL], num_samples=1)
            assert usage.active_units == np.sum(expected > 0.01)
            found += [*expected]
    assert np.any(np.abs(np.array(found) - 0.01) < 0.005)


def test_the_rate_of_quantised_latents_is_fixed():
    model = VectorQuantizedVAE(
        SymbolEncoder(SYMBOLS, 5, seed=1),
        VectorQuantizer(2, 3, 4, seed=2),
        SymbolDecoder(SYMBOLS, 8, 5, num_layers=1, seed=3),
        seed=4,
    )
    found = quantised_usage(model, [_ALL[:4], _ALL[4:]])
    loss, quantised = model.bound(_ALL)
    assert found.nll == pytest.approx(np.mean(loss), rel=1e-6)
    assert found.usage == found.representational_kl == 2 * np.log(3)
    used = [len(set(column)) > 1 for column in quantised.codes.numpy().T]
    assert found.active_units == sum(used)
    with pytest.raises(ValueError, match="expected at least one example"):
        quantised_usage(model, [_ALL[:0]])
    assert quantised_usage(model, [_ALL[:0], _ALL]) == quantised_usage(model, [_ALL])


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="expected at least one example"):
        latent_usage(symbol_model(), [])
    with pytest.raises(ValueError, match="expected at least one example"):
        latent_usage(symbol_model(), [_ALL[:0], _ALL[:0]])
    with pytest.raises(ValueError, match="`num_samples` must be an integer >= 1"):
        latent_usage(symbol_model(), [_ALL], num_samples=0)
