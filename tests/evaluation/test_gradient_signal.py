"""Signal and noise of gradient estimates, against NumPy on the same draws."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.evaluation import gradient_signal
from rlm_tf.models.latent.latent_gradients import sample_gradients
from tests.models.latent.vae_fixtures import X, symbol_model

# Tracing takes longer than the few steps of most tests.
pytestmark = pytest.mark.eager


def _gradients(estimator, places, repeats):
    """Returns the gradients of some variables, one row a repeat."""
    model = symbol_model(estimator, prior=True)
    model(X)
    variables = [
        v.value
        for v, there in zip(model.trainable_variables, places, strict=True)
        if there
    ]
    rows = []
    for _ in range(repeats):
        scale = tf.fill([len(X)], 0.25)
        _, found = sample_gradients(model, tf.constant(X), variables, scale)
        parts = [
            np.zeros(v.shape) if g is None else tf.convert_to_tensor(g).numpy()
            for v, g in zip(variables, found, strict=True)
        ]
        rows.append(np.concatenate([part.ravel() for part in parts]))
    return np.array(rows, np.float64)


def _ratio(rows):
    variance = rows.var(axis=0, ddof=1).sum()
    square = np.square(rows.mean(axis=0)).sum() - variance / len(rows)
    return np.sqrt(max(square, 0) / variance)


@pytest.mark.parametrize(("estimator", "repeats"), [("dreg", 6), ("vimco", 20)])
@pytest.mark.landing
def test_signal_and_noise_are_those_of_the_draws(estimator, repeats):
    model = symbol_model(estimator, prior=True)
    model(X)
    of_model = {id(v) for v in model.decoder.trainable_variables}
    of_model |= {id(v) for v in model.latents.prior_variables}
    places = np.array([id(v) in of_model for v in model.trainable_variables])
    assert len(model.latents.prior_variables) and 0 < places.sum() < len(places)
    found = gradient_signal(model, X, repeats)
    assert set(found) == {"proposal", "model"}
    for name, own in (("proposal", ~places), ("model", places)):
        rows = _gradients(estimator, own, repeats)
        variance = rows.var(axis=0, ddof=1).sum()
        square = np.square(rows.mean(axis=0)).sum() - variance / repeats
        signal = np.sqrt(max(square, 0))
        np.testing.assert_allclose(found[name].noise, np.sqrt(variance), rtol=1e-4)
        np.testing.assert_allclose(found[name].signal, signal, rtol=1e-3, atol=1e-6)
        assert found[name].ratio == found[name].signal / found[name].noise
        blocks = np.array_split(np.arange(repeats), min(repeats, 10))
        ratios = np.array([_ratio(np.delete(rows, block, axis=0)) for block in blocks])
        spread = np.square(ratios - ratios.mean()).sum()
        error = np.sqrt((len(blocks) - 1) / len(blocks) * spread)
        assert found[name].ratio_error == pytest.approx(error, rel=2e-3, abs=1e-6)


@pytest.mark.landing
@pytest.mark.graph
def test_baselines_take_noise_away():
    noise = {}
    for estimator in ("reinforce", "vimco"):
        model = symbol_model(estimator)
        model(X)
        noise[estimator] = gradient_signal(model, X, 60)["proposal"].noise
    assert noise["vimco"] < 0.8 * noise["reinforce"]


def test_without_noise_there_is_no_error():
    model = symbol_model("elbo", objective="u_hat", num_samples=1)
    model(X)
    model.latents.log_variance_head.bias.assign(tf.fill([4], -200.0))
    found = gradient_signal(model, X, 3)
    assert found["model"].noise == 0 and found["model"].ratio_error == 0
    assert found["model"].ratio == np.inf
    assert np.isnan(gradient_signal(symbol_model("dreg"), X, 2)["model"].ratio_error)


def test_one_repeat_is_refused():
    with pytest.raises(ValueError, match="`num_repeats` must be"):
        gradient_signal(symbol_model("vimco"), X, 1)
