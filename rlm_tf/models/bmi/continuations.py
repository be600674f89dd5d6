"""A piece of text read right behind another one, in one pass."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from rlm_tf.padding import PADDING


class Continuation(NamedTuple):
    """Rows `[X, Y]` without a gap between them, padded behind Y.

    Attributes:
        tokens: int32 `[P, 2 L]`, padding is 0.
        of_first: bool `[P, 2 L]`, the positions of X.
        places: int32 `[P, L]`, the positions whose prediction is the first, second, ...
            token of Y; the first is the last token of X.
        targets: int32 `[P, L]`, Y, padding is 0.
        weights: `[P, L]`, 1 for a token of Y.
        lengths: `[P]`, tokens of Y.
    """

    tokens: tf.Tensor
    of_first: tf.Tensor
    places: tf.Tensor
    targets: tf.Tensor
    weights: tf.Tensor
    lengths: tf.Tensor


def continuation(first: tf.Tensor, second: tf.Tensor) -> Continuation:
    """Returns Y behind X.

    So the state after X is what Y is read from, its gradient reaches X, and no state
    has to be looked up in the midst of a row.

    Args:
        first: X, int `[P, L]`, padded with -1; at least one token each.
        second: Y, likewise.
    """
    steps = _width(second)
    before = tf.reduce_sum(tf.cast(first != PADDING, tf.int32), axis=1)[:, tf.newaxis]
    present = second != PADDING
    within = tf.range(_width(first) + steps)[tf.newaxis] - before
    behind = tf.clip_by_value(within, 0, steps - 1)
    joined = tf.where(
        within < 0,
        tf.pad(first, [[0, 0], [0, steps]], constant_values=PADDING),
        tf.gather(second, behind, batch_dims=1),
    )
    joined = tf.where(within < steps, joined, PADDING)
    weights = tf.cast(present, tf.float32)
    return Continuation(
        tf.maximum(joined, 0),
        within < 0,
        before - 1 + tf.range(steps)[tf.newaxis],
        tf.where(present, second, tf.zeros_like(second)),
        weights,
        tf.reduce_sum(weights, axis=1),
    )


def _width(pieces: tf.Tensor) -> int | tf.Tensor:
    return pieces.shape[1] if pieces.shape[1] is not None else tf.shape(pieces)[1]
