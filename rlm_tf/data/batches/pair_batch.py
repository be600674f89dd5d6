"""Pairs of neighbouring pieces of text that go along with a window."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from rlm_tf.data.batches.contiguous_batches import Element

# ((tokens [B, T], start [B], PairBatch), next_tokens [B, T], weights [B, T])
PairElement = tuple[tuple[tf.Tensor, tf.Tensor, "PairBatch"], tf.Tensor, tf.Tensor]


class PairBatch(NamedTuple):
    """P pairs, spread over the B rows of a window so that replicas share them out.

    The pair of global row p is entry `[p // R, p % R]`, R = ceil(P / B); where P is no
    multiple of B the last entries repeat pairs with weight 0. Pieces are padded with -1
    behind their end.

    Attributes:
        first: X, int32 `[B, R, L]`.
        second: Y*, the piece that follows X, int32 `[B, R, L]`.
        negatives: Y-, pieces from anywhere, int32 `[B, R, K, L]`.
        proposal: Y, some pieces behind Y*, int32 `[B, R, L]`.
        log_proposals: ln G of how far Y is behind Y*, float32 `[B, R]`, nats.
        offsets: That distance in pieces, 0 for Y* itself, int32 `[B, R]`.
        weights: float32 `[B, R]`, 1 for a pair, 0 for what fills up.
    """

    first: tf.Tensor
    second: tf.Tensor
    negatives: tf.Tensor
    proposal: tf.Tensor
    log_proposals: tf.Tensor
    offsets: tf.Tensor
    weights: tf.Tensor


def with_pairs(caller: str, element: Element, pairs: PairBatch) -> PairElement:
    """Returns the element of a window with pairs `[P, ...]` beside its tokens.

    Args:
        caller: For the message.
        element: The window.
        pairs: To be laid out over its rows.

    Raises:
        ValueError: If the window does not know its number of rows.
    """
    (tokens, start), next_tokens, weights = element
    rows = tokens.shape[0]
    if rows is None:
        raise ValueError(
            f"{caller}: the window must have a fixed number of rows, found shape "
            f"{tokens.shape}; batch with `drop_remainder=True`."
        )
    number = pairs.weights.shape[0]
    each = -(-number // rows)
    surplus = rows * each - number
    places = tf.range(rows * each) % number

    def spread(values: tf.Tensor) -> tf.Tensor:
        if surplus:
            values = tf.gather(values, places)
        return tf.reshape(values, [rows, each, *values.shape[1:]])

    real = tf.cast(tf.range(rows * each) < number, tf.float32)
    laid_out = PairBatch(*map(spread, pairs))
    kept = laid_out.weights * tf.reshape(real, [rows, each])
    return (tokens, start, laid_out._replace(weights=kept)), next_tokens, weights
