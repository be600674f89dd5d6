"""Features of whole pieces of text, from those of their tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import tensorflow as tf

from rlm_tf.checks import check_option

Pooling = Literal["max", "last", "mean"]
POOLINGS: tuple[Pooling, ...] = ("max", "last", "mean")


def pooled(
    hidden: Sequence[tf.Tensor], present: tf.Tensor, pooling: Pooling
) -> tf.Tensor:
    """Returns phi: the outputs of all layers, pooled over tokens, side by side.

    `max` shows a critic every feature that any token had; `last` only what is left of
    them behind the last token, which takes a memory.

    Args:
        hidden: `[R, L, F_l]` for each layer l.
        present: bool `[R, L]`, which positions are tokens; the first ones of each row.
        pooling: How.

    Returns:
        `[R, sum_l F_l]`; zeros for rows without a token.

    Raises:
        ValueError: If the pooling is unknown.
    """
    check_option("pooled", "pooling", pooling, POOLINGS)
    lengths = tf.reduce_sum(tf.cast(present, tf.int32), axis=1)
    some = (lengths > 0)[:, tf.newaxis]
    found = []
    for values in hidden:
        zeros = tf.zeros_like(values)
        if pooling == "last":
            last = tf.maximum(lengths - 1, 0)
            one = tf.gather(values, last, batch_dims=1)
        elif pooling == "mean":
            total = tf.reduce_sum(
                tf.where(present[..., tf.newaxis], values, zeros), axis=1
            )
            number = tf.cast(tf.maximum(lengths, 1), values.dtype)
            one = total / number[:, tf.newaxis]
        else:
            least = tf.fill(tf.shape(values), values.dtype.min)
            one = tf.reduce_max(
                tf.where(present[..., tf.newaxis], values, least), axis=1
            )
        found.append(tf.where(some, one, tf.zeros_like(one)))
    return tf.concat(found, axis=-1)
