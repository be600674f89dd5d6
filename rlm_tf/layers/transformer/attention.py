"""Attention of several heads, with dropout on its weights."""

from __future__ import annotations

import keras
import tensorflow as tf

from rlm_tf.numerics import at_least_single


def attend(
    query: tf.Tensor,
    key: tf.Tensor,
    value: tf.Tensor,
    allowed: tf.Tensor,
    bias: tf.Tensor | None = None,
    lose: keras.layers.Layer | None = None,
) -> tf.Tensor:
    """Returns `softmax(query key^T / sqrt(d) + bias) value` of each head.

    A query that may see no key sees all of them alike.

    Args:
        query: `[B, T, H, d]`.
        key: `[B, S, H, d]`.
        value: `[B, S, H, d]`.
        allowed: bool, broadcasts to `[B, H, T, S]`: keys that may be seen.
        bias: Broadcasts to `[B, H, T, S]`, or None.
        lose: Dropout on the weights `[B, H, T, S]`, as in training; None: none.

    Returns:
        `[B, T, H, d]`.
    """
    if lose is None:
        return keras.ops.dot_product_attention(
            query, key, value, bias=bias, mask=allowed
        )
    scale = tf.cast(query.shape[-1] ** -0.5, query.dtype)
    scores = at_least_single(tf.einsum("bthd,bshd->bhts", query * scale, key))
    if bias is not None:
        scores += tf.cast(bias, scores.dtype)
    scores = tf.where(allowed, scores, scores.dtype.min / 2)
    weights = tf.cast(tf.nn.softmax(scores), value.dtype)
    weights = lose(weights, training=True)
    return tf.einsum("bhts,bshd->bthd", weights, value)
