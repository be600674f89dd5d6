"""Small language models and streams for the tests of induced model matching."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from rlm_tf.data import contiguous_batches
from rlm_tf.models import (
    InducedModelMatching,
    RecurrentLanguageModel,
    SampledContexts,
)
from rlm_tf.restricted import KneserNey

VOCABULARY = 7


def stream(length: int = 400, seed: int = 3) -> np.ndarray:
    """Words of a random order-2 source, so that contexts matter."""
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.full(VOCABULARY, 0.3), size=(VOCABULARY, VOCABULARY))
    words = [0, 1]
    while len(words) < length:
        words.append(int(rng.choice(VOCABULARY, p=table[words[-2], words[-1]])))
    return np.array(words, np.int32)


def language_model(**options) -> RecurrentLanguageModel:
    """A one-layer model of width 8; without dropout unless asked."""
    options = {"seed": 5, "initializer_scale": 0.5, "jit_loop": False, **options}
    return RecurrentLanguageModel(VOCABULARY, 8, 1, **options)


def causal_transformer(width: int = 8, longest: int = 16) -> keras.Model:
    """A functional model of Keras layers: one block of causal self-attention."""
    layers = keras.layers
    tokens = keras.Input([None], dtype="int32")
    places = keras.ops.cumsum(keras.ops.ones_like(tokens), axis=1) - 1
    x = layers.Embedding(VOCABULARY, width)(tokens)
    x = x + layers.Embedding(longest, width)(places)
    attention = layers.MultiHeadAttention(2, width // 2, seed=1)
    x = layers.LayerNormalization()(x + attention(x, x, use_causal_mask=True))
    return keras.Model(tokens, layers.Dense(VOCABULARY)(x))


def restricted_model(order: int = 2, words: np.ndarray | None = None) -> KneserNey:
    """Kneser-Ney of the stream."""
    return KneserNey(order).fit(stream() if words is None else words, VOCABULARY)


def batches(words: np.ndarray | None = None, batch_size: int = 4, window: int = 10):
    """Contiguous batches of the stream."""
    words = stream() if words is None else words
    return contiguous_batches(words, batch_size, window, prefix=0)


def compiled(model: keras.Model, rate: float = 0.5, **options) -> keras.Model:
    """The model with plain gradient descent, for which a step shows the gradient."""
    model.compile(keras.optimizers.SGD(rate), **options)
    return model


def wrapper(contexts, **options) -> InducedModelMatching:
    """IMM around `language_model()` with a bigram, compiled."""
    model = options.pop("model", None) or language_model()
    restricted = options.pop("restricted", None) or restricted_model()
    return compiled(InducedModelMatching(model, restricted, contexts, **options))


def flat_weights(model: keras.Model) -> np.ndarray:
    """All trainable weights in one vector."""
    return np.concatenate(
        [np.ravel(tf.convert_to_tensor(v)) for v in model.trainable_variables]
    )


def step_gradient(model: keras.Model, element, rate: float = 0.5) -> np.ndarray:
    """What one step of `fit` on one batch moves, divided by the learning rate."""
    before = flat_weights(model)
    model.fit(tf.data.Dataset.from_tensors(element), verbose=0, shuffle=False)
    return (before - flat_weights(model)) / rate


def element(batch_size: int = 4):
    """The first batch of the stream."""
    return next(iter(batches(None, batch_size).dataset()))


def sampled(**options) -> SampledContexts:
    """Two samples a position, windows of four words, unless asked otherwise."""
    return SampledContexts(stream(), **{"k": 2, "window": 4, **options})


def eager(contexts, **options) -> InducedModelMatching:
    """The wrapper without graphs: most tests take a few steps, and tracing is slow."""
    return compiled(wrapper(contexts, **options), run_eagerly=True)


def fit(model: keras.Model, data: tf.data.Dataset, **options) -> dict:
    """Trains in order and returns the history."""
    return model.fit(data, verbose=0, shuffle=False, **options).history


def step(model: keras.Model, batch) -> dict:
    """Takes one training step."""
    return fit(model, tf.data.Dataset.from_tensors(batch))


def round_trip(model: keras.Model, path) -> keras.Model:
    """Saves a model and loads it in safe mode."""
    model.save(path)
    return keras.saving.load_model(path, safe_mode=True)
