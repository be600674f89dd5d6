"""Latent-variable models whose parts are plain Keras layers and models."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.layers import NormalLatents, VectorQuantizer
from rlm_tf.models import MonteCarloVAE, VectorQuantizedVAE

# A few steps each: tracing graphs would take longer.
pytestmark = pytest.mark.eager

_IMAGES = (np.random.default_rng(3).random((6, 8)) > 0.5).astype(np.float32)


@keras.saving.register_keras_serializable("test_parts")
class _Pixels(keras.layers.Layer):
    """Independent pixels, by a layer that makes its weights when it is called."""

    def __init__(self, size=8, **kwargs):
        super().__init__(**kwargs)
        self.size = size
        self.dense = keras.layers.Dense(size)

    def call(self, z, x, training=False):
        z = tf.reshape(z, [*tf.unstack(tf.shape(z)[:2]), int(np.prod(z.shape[2:]))])
        return _log_likelihood(self.dense(z), x)

    def get_config(self):
        return {**super().get_config(), "size": self.size}


def _log_likelihood(logits, x):
    losses = tf.nn.sigmoid_cross_entropy_with_logits(
        tf.broadcast_to(x, tf.shape(logits)), logits
    )
    return -tf.reduce_sum(losses, axis=-1)


def _encoder():
    return keras.Sequential([keras.layers.Dense(5, activation="tanh")])


def _monte_carlo(decoder=None, encoder=None):
    return MonteCarloVAE(
        encoder or _encoder(),
        NormalLatents(3),
        decoder or _Pixels(),
        num_samples=2,
        lambda_=tf.constant(0.25),
    )


def _quantised(decoder=None):
    return VectorQuantizedVAE(
        _encoder(), VectorQuantizer(2, 3, 4), decoder or _Pixels()
    )


def _functional(*event):
    """A decoder that is a functional model of latents and x."""
    z = keras.Input(batch_shape=(None, None, *event))
    x = keras.Input(batch_shape=(None, 8))
    flat = keras.layers.TimeDistributed(keras.layers.Flatten())(z)
    logits = keras.layers.Dense(8)(flat)
    difference = keras.ops.expand_dims(x, 0) - keras.ops.sigmoid(logits)
    return keras.Model([z, x], -keras.ops.sum(difference**2, axis=-1))


@pytest.mark.parametrize(
    "make",
    [
        _monte_carlo,
        _quantised,
        lambda: _monte_carlo(_functional(3)),
        lambda: _quantised(_functional(2, 4)),
    ],
)
def test_files_have_the_weights_of_all_parts(make, tmp_path):
    model = make()
    model.compile(keras.optimizers.Adam(0.01))
    model.fit(_IMAGES, batch_size=3, epochs=2, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert len(loaded.weights) == len(model.weights)
    for own, other in zip(loaded.weights, model.weights, strict=True):
        np.testing.assert_array_equal(own, other)
    # The optimiser goes on where it was, too; Keras' files have no state of draws.
    for one in (loaded, model):
        if isinstance(one, MonteCarloVAE):
            one.seed_generator.state.assign([1, 2])
        one.fit(_IMAGES, batch_size=6, verbose=0, shuffle=False)
    for own, other in zip(loaded.weights, model.weights, strict=True):
        np.testing.assert_allclose(own, other, atol=1e-6)
    # And may be saved again.
    loaded.save(tmp_path / "again.keras")
    again = keras.models.load_model(tmp_path / "again.keras")
    assert len(again.weights) == len(model.weights)


@pytest.mark.parametrize(
    ("decoder", "found"),
    [
        (lambda z, x: tf.zeros([6]), r"found shape \[6\]"),
        (lambda z, x: z, r"found shape \[2, 6, 3\]"),
        (lambda z, x: tf.transpose(z[:, :, 0]), r"found shape \[6, 2\]"),
    ],
)
def test_what_a_decoder_returns_is_checked(decoder, found):
    class Decoder(keras.layers.Layer):
        def call(self, z, x):
            return decoder(z, x)

    model = _monte_carlo(Decoder())
    message = r"MonteCarloVAE: `decoder` must return .*\[K, B\] = \[2, 6\], " + found
    with pytest.raises(ValueError, match=message):
        model.sample(_IMAGES, 2, model.latents(model.encoder(_IMAGES)))


def test_features_are_vectors():
    encoder = keras.Sequential([keras.layers.Reshape([2, 4])])
    with pytest.raises(ValueError, match=r"`features_of_encoder` must have axes \[B F"):
        _monte_carlo(encoder=encoder)(_IMAGES)


@pytest.mark.parametrize("value", ["0.1", None, [0.1, 0.2]])
@pytest.mark.parametrize("option", ["lambda_", "alpha"])
def test_options_are_numbers(option, value):
    with pytest.raises(ValueError, match=f"`{option}` must be one number, found"):
        MonteCarloVAE(_encoder(), NormalLatents(3), _Pixels(), **{option: value})
