"""Encoders and decoders know whether they are trained: their dropout acts then only."""

from __future__ import annotations

import keras
import pytest

from rlm_tf.evaluation import latent_usage, quantised_usage
from rlm_tf.layers import SymbolDecoder, SymbolEncoder, VectorQuantizer
from rlm_tf.models import MonteCarloVAE, VectorQuantizedVAE
from tests.models.latent.vae_fixtures import SYMBOLS, X, latents_of

# A few steps each: tracing graphs would take longer.
pytestmark = pytest.mark.eager


class RecordingEncoder(SymbolEncoder):
    def call(self, symbols, training=False):
        self.modes.append(training)
        return super().call(symbols)


class RecordingDecoder(SymbolDecoder):
    def call(self, latents, symbols, training=False):
        self.modes.append(training)
        return super().call(latents, symbols)


def _parts(latent_size, embed=False):
    """An encoder and a decoder that write down how they are called."""
    encoder = RecordingEncoder(SYMBOLS, 5)
    decoder = RecordingDecoder(SYMBOLS, latent_size, 5, num_layers=1, embed=embed)
    # A plain list: Keras would wrap one that is set on a layer.
    modes: list[bool] = []
    for part in (encoder, decoder):
        object.__setattr__(part, "modes", modes)
    return encoder, decoder, modes


def _modes_of(modes, run, *arguments, **options):
    modes.clear()
    run(*arguments, **options)
    return modes


@pytest.mark.parametrize(
    "estimator", ["reparameterised", "stl", "dreg", "elbo", "reinforce", "vimco"]
)
def test_samples_of_latents(estimator):
    latents = latents_of(estimator)
    discrete = not latents.is_reparameterised
    encoder, decoder, modes = _parts(6 if discrete else 4, embed=discrete)
    model = MonteCarloVAE(encoder, latents, decoder, estimator=estimator, num_samples=3)
    model.compile(keras.optimizers.SGD(0.1))
    assert _modes_of(modes, model.fit, X, verbose=0) == [True, True]
    assert _modes_of(modes, model.evaluate, X, verbose=0) == [False, False]
    assert _modes_of(modes, model.sample, X, 3) == [False, False]
    assert not any(_modes_of(modes, latent_usage, model, [X], 3))


def test_quantised_latents():
    encoder, decoder, modes = _parts(8)
    model = VectorQuantizedVAE(encoder, VectorQuantizer(2, 3, 4), decoder)
    model.compile(keras.optimizers.SGD(0.1))
    assert _modes_of(modes, model.fit, X, verbose=0) == [True, True]
    assert _modes_of(modes, model.evaluate, X, verbose=0) == [False, False]
    assert not any(_modes_of(modes, quantised_usage, model, [X]))
