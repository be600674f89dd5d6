"""Gradients of VIMCO and DReG against PyTorch's, for the same weights and samples."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from experiments.kit.vae_config import VaeConfig
from experiments.kit.vae_model import build_model
from rlm_tf.models.latent.latent_gradients import sample_gradients

_SYMBOLS, _UNITS, _SAMPLES = 11, 5, 4
_X = np.array([3, 1, 10, 1, 0, 7], np.int32)


def _model(discrete: bool):
    config = VaeConfig(
        num_symbols=_SYMBOLS,
        units=_UNITS,
        latents="categorical" if discrete else "normal",
        estimator="vimco" if discrete else "dreg",
        num_samples=_SAMPLES,
        lambda_=0.3,
    )
    model = build_model(config, _SYMBOLS)
    model(_X)
    rng = np.random.default_rng(1)
    for variable in model.trainable_variables:
        # Biases other than zero, and weights that matter.
        variable.assign(rng.normal(0.0, 0.5, variable.shape))
    return model


def _linear(layer, *others):
    """Weights as PyTorch has them, of several layers side by side."""
    layers = (layer, *others)
    kernel = np.concatenate([np.array(each.kernel) for each in layers], axis=1).T
    if not layer.use_bias:
        return [kernel]
    return [kernel, np.concatenate([np.array(each.bias) for each in layers])]


def _weights(model, discrete: bool):
    encoder, decoder, latents = model.encoder, model.decoder, model.latents
    heads = (
        [latents.logits_head]
        if discrete
        else [latents.mean_head, latents.log_variance_head]
    )
    first = [decoder.embedding] if discrete else []
    return {
        "encoder": [
            np.array(encoder.embedding.embeddings),
            *(w for layer in encoder.hidden for w in _linear(layer)),
        ],
        "head": _linear(*heads),
        "decoder": [
            *(w for layer in [*first, *decoder.hidden] for w in _linear(layer)),
            np.array(decoder.output_layer.kernel),
            np.array(decoder.output_layer.bias),
        ],
    }


@pytest.mark.peers
@pytest.mark.parametrize("discrete", [True, False], ids=["vimco", "dreg"])
def test_gradients_are_those_of_pytorch(discrete, monkeypatch):
    torch = pytest.importorskip("torch")
    from experiments.benchmark import torch_vae

    model = _model(discrete)
    parameters = model(_X)
    z = model.draw(parameters, _SAMPLES).numpy()
    # The draws of the step below are these.
    model.seed_generator.state.assign(_model(discrete).seed_generator.state)
    other = torch_vae.SymbolVAE(_SYMBOLS, _UNITS, discrete)
    for part, weights in _weights(model, discrete).items():
        own = list(getattr(other, part).parameters())
        assert [tuple(p.shape) for p in own] == [w.shape for w in weights]
        for parameter, value in zip(own, weights, strict=True):
            parameter.data = torch.tensor(value)
    x = torch.tensor(_X, dtype=torch.int64)
    if discrete:
        monkeypatch.setattr(
            torch.distributions.OneHotCategorical,
            "sample",
            lambda self, shape: torch.tensor(z),
        )
        loss = torch_vae._vimco(other, x, _SAMPLES, 0.3)
    else:
        scale = np.exp(0.5 * parameters["log_variance"].numpy())
        noise = torch.tensor((z - parameters["mean"].numpy()) / scale)
        monkeypatch.setattr(
            torch.distributions.Normal,
            "rsample",
            lambda self, shape: self.loc + self.scale * noise,
        )
        loss = torch_vae._dreg(other, x, _SAMPLES, 0.3)
    variables = model.trainable_variables
    scale = tf.fill([len(_X)], 1 / len(_X))
    found, gradients = sample_gradients(
        model, tf.constant(_X), [v.value for v in variables], scale
    )
    assert -np.mean(found.objective) == pytest.approx(loss, rel=1e-5)
    # Gradients take the places of the weights, to be compared in PyTorch's form.
    for variable, gradient in zip(variables, gradients, strict=True):
        variable.assign(tf.convert_to_tensor(gradient))
    for part, ours in _weights(model, discrete).items():
        theirs = [p.grad.numpy() for p in getattr(other, part).parameters()]
        assert max(np.abs(value).max() for value in theirs) > 1e-4
        for own, expected in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(own, expected, atol=2e-6, rtol=1e-4)
