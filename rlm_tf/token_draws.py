"""Draws from next-token distributions."""

from __future__ import annotations

import tensorflow as tf

from rlm_tf.checks import check_shapes
from rlm_tf.typing import TensorLike


def draw_tokens(logits: TensorLike, uniforms: TensorLike) -> tf.Tensor:
    """Draws one token a row by inverting the cumulative distribution.

    One number a row is enough, and a row's token depends on nothing but its logits and
    its number. A token of logit minus infinity is never drawn.

    Args:
        logits: `[N, V]`.
        uniforms: float64 `[N]`, in [0, 1).

    Returns:
        int32 `[N]`.
    """
    logits, uniforms = tf.convert_to_tensor(logits), tf.cast(uniforms, tf.float64)
    check_shapes("draw_tokens", logits=(logits, "N V"), uniforms=(uniforms, "N"))
    weights = tf.exp(logits - tf.reduce_max(logits, axis=-1, keepdims=True))
    cumulative = tf.cumsum(tf.cast(weights, tf.float64), axis=-1)
    # Uniforms are multiples of 2^-52, so the target stays below the last entry, and
    # the first entry above it belongs to a token of positive weight.
    target = uniforms * cumulative[:, -1]
    found = tf.searchsorted(cumulative, target[:, tf.newaxis], side="right")
    return tf.squeeze(found, axis=-1)
