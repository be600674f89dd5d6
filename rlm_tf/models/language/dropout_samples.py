"""Dropout samples of a stream: apart as rows, together side by side."""

from __future__ import annotations

import tensorflow as tf

LayerStates = list[list[tf.Tensor]]


def apart(
    tokens: tf.Tensor, states: LayerStates, samples: int
) -> tuple[tf.Tensor, LayerStates]:
    """Returns D rows for each row: sample d of row b is row `b D + d`.

    Args:
        tokens: `[B, T]`.
        states: Those of each layer, `[B, D S]`.
        samples: D.

    Returns:
        Tokens `[B D, T]` and states `[B D, S]`.
    """
    rows = [
        [tf.reshape(state, [-1, state.shape[-1] // samples]) for state in layer]
        for layer in states
    ]
    return tf.repeat(tokens, samples, axis=0), rows


def together(
    features: tf.Tensor, states: LayerStates, samples: int
) -> tuple[tf.Tensor, LayerStates]:
    """Undoes `apart` for what a model made of it.

    Args:
        features: `[B D, T, F]`.
        states: Those of each layer, `[B D, S]`.
        samples: D.

    Returns:
        Features `[B, T, D F]` and states `[B, D S]`.
    """
    steps, width = tf.shape(features)[1], features.shape[-1]
    joined = tf.reshape(features, [-1, samples, steps, width])
    joined = tf.reshape(
        tf.transpose(joined, [0, 2, 1, 3]), [-1, steps, samples * width]
    )
    rows = features.shape[0]
    rows = None if rows is None else rows // samples
    joined.set_shape([rows, features.shape[1], samples * width])
    new_states = [
        [tf.reshape(state, [-1, state.shape[-1] * samples]) for state in layer]
        for layer in states
    ]
    return joined, new_states


def split(features: tf.Tensor, width: int) -> tf.Tensor:
    """Returns features `[..., D F]` as `[..., D, F]`, F being `width`."""
    samples = features.shape[-1] // width
    shape = tf.concat([tf.shape(features)[:-1], [samples, width]], axis=0)
    parts = tf.reshape(features, shape)
    parts.set_shape([*features.shape[:-1], samples, width])
    return parts
