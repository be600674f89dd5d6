"""Small recurrent language models and streams for their tests."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from rlm_tf.layers import MogrifierLSTMCell
from rlm_tf.models import RecurrentLanguageModel, RegularizedLanguageModel

V, H, B, T = 11, 6, 4, 5


def make(**kwargs):
    kwargs = {"initializer_scale": 0.5, **kwargs}
    return RecurrentLanguageModel(V, H, 2, **kwargs)


def make_regularized(cell=None, **kwargs):
    cell = cell or MogrifierLSTMCell(4, 3, 2, cap_input_gate=True)
    options = {"num_layers": 3, "jit_loop": False, **kwargs}
    return RegularizedLanguageModel(V, cell, **options)


def tokens(rng, steps=1):
    return rng.integers(V, size=(steps, B, T)).astype("int32")


def dataset(rng, steps=4, batch=B):
    """Batches of one epoch: random tokens, streams start at the first step."""
    x = rng.integers(V, size=(steps, batch, T)).astype("int32")
    start = np.zeros((steps, batch), "int32")
    start[0] = 1
    y = np.roll(x, -1, axis=2)
    weights = np.ones(x.shape, "float32")
    return tf.data.Dataset.from_tensor_slices(((x, start), y, weights))


def compile_and_fit(model, data, epochs=2, validation_data=None, **kwargs):
    model.compile(keras.optimizers.SGD(0.5), **kwargs)
    return model.fit(
        data, epochs=epochs, validation_data=validation_data, shuffle=False, verbose=0
    ).history


def flat(states):
    return [np.array(state) for layer in states for state in layer]
