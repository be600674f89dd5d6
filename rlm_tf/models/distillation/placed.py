"""Batches of a text that may say where in it their targets are."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def window_and_places(x: Any) -> tuple[Any, Any]:
    """Returns tokens, or `(tokens, start)`, and the places of targets, or None.

    Args:
        x: Of batches of language models, or of `PlacedBatches`: a pair whose first part
            is `(tokens, start)`.
    """
    if isinstance(x, tuple | list) and isinstance(x[0], tuple | list):
        return tuple(x[0]), x[1]
    return x, None


def flat_weights(targets: tf.Tensor, sample_weight: Any) -> tf.Tensor:
    """Returns the weights of targets `[N]`, float32; ones if there are none."""
    if sample_weight is None:
        return tf.ones([tf.size(targets)])
    return tf.reshape(tf.cast(sample_weight, tf.float32), [-1])
