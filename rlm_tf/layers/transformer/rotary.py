"""Rotary positions (Su et al. 2021, arXiv 2104.09864)."""

from __future__ import annotations

import tensorflow as tf

_BASE = 10_000.0


def rotate(heads: tf.Tensor, positions: tf.Tensor) -> tf.Tensor:
    """Turns pairs of features by angles that grow with the position.

    Products of two turned vectors depend on the difference of their positions alone.
    Pair i is made of features i and i + d/2, its angle is `position / 10000^(2i/d)`.

    Args:
        heads: `[B, T, H, d]`, d even.
        positions: Numbers `[T]`.

    Returns:
        `[B, T, H, d]`.
    """
    half = heads.shape[-1] // 2
    # Half precision would not tell large positions apart.
    precise = tf.float64 if heads.dtype == tf.float64 else tf.float32
    powers = tf.range(half, dtype=precise) / half
    angles = tf.cast(positions, precise)[:, tf.newaxis] * _BASE**-powers
    cosine = tf.cast(tf.cos(angles), heads.dtype)[:, tf.newaxis]
    sine = tf.cast(tf.sin(angles), heads.dtype)[:, tf.newaxis]
    first, second = heads[..., :half], heads[..., half:]
    return tf.concat(
        [first * cosine - second * sine, first * sine + second * cosine], axis=-1
    )
