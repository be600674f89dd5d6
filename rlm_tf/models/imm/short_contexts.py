"""The short contexts of a batch of windows, and the groups that they form."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf


class BatchGroups(NamedTuple):
    """Positions of a batch, sorted into groups of equal short contexts.

    Attributes:
        rows: int32 `[M]`, flat positions that belong to a group.
        groups: int32 `[M]`, the group of each.
        contexts: int32 `[G, context_length]`, the short context of each group.
        counts: int32 `[G]`, rows in each group.
    """

    rows: tf.Tensor
    groups: tf.Tensor
    contexts: tf.Tensor
    counts: tf.Tensor


def short_contexts(tokens: tf.Tensor, context_length: int) -> tf.Tensor:
    """Returns the last words before each prediction.

    Args:
        tokens: int `[B, T]`, the words that the model reads.
        context_length: Words of a short context, L; 0 for none, that of a unigram.

    Returns:
        int32 `[B, T, L]`, oldest first. In the first `L - 1` positions of a window the
        context is not whole; there it holds the window's first word in place of the
        missing ones (see `whole_context`).
    """
    tokens = tf.cast(tokens, tf.int32)
    if context_length == 0:
        return tf.zeros([*tf.unstack(tf.shape(tokens)), 0], tf.int32)
    first = tf.repeat(tokens[:, :1], context_length - 1, axis=1)
    padded = tf.concat([first, tokens], axis=1)
    length = tf.shape(tokens)[1]
    lags = [padded[:, lag : lag + length] for lag in range(context_length)]
    return tf.stack(lags, axis=-1)


def whole_context(tokens: tf.Tensor, context_length: int) -> tf.Tensor:
    """Returns bool `[B, T]`: whether a position's short context lies in the window."""
    steps = tf.range(tf.shape(tokens)[1]) >= context_length - 1
    return tf.broadcast_to(steps, tf.shape(tokens))


def position_weights(
    tokens: tf.Tensor, context_length: int, sample_weight: tf.Tensor | None
) -> tf.Tensor:
    """Returns what each position counts in an IMM term.

    Args:
        tokens: int `[B, T]`.
        context_length: Words of a short context.
        sample_weight: `[B, T]`, or None for ones.

    Returns:
        float32 `[B * T]`: the sample weight where the short context is whole, else 0.

    Raises:
        ValueError: If the windows are shorter than a short context: none would count.
    """
    length = tokens.shape[1]
    if length is not None and length < context_length:
        raise ValueError(
            f"InducedModelMatching: short contexts of {context_length} words need "
            f"windows of as many tokens at least, found windows of {length}."
        )
    weights = tf.cast(whole_context(tokens, context_length), tf.float32)
    if sample_weight is not None:
        weights *= tf.cast(sample_weight, tf.float32)
    return tf.reshape(weights, [-1])


def context_keys(contexts: tf.Tensor, vocabulary_size: int) -> tf.Tensor:
    """Returns one int64 key for each short context, equal for equal contexts.

    Keys of different contexts differ if `V ** L < 2 ** 63`; beyond, arithmetic wraps
    around and two contexts of a batch share a key with a probability near `2 ** -40`.

    Args:
        contexts: int `[..., L]`.
        vocabulary_size: V.
    """
    contexts = tf.cast(contexts, tf.int64)
    keys = tf.zeros(tf.shape(contexts)[:-1], tf.int64)
    for lag in range(contexts.shape[-1]):
        # An odd multiplier is invertible modulo 2 ** 64.
        keys = keys * (vocabulary_size | 1) + contexts[..., lag]
    return keys


def group_by_context(
    keys: tf.Tensor, counts_at: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Groups positions by key.

    Args:
        keys: int64 `[N]`.
        counts_at: bool `[N]`, which positions take part.

    Returns:
        `(rows, groups, unique_keys)`: flat positions that take part int32 `[M]`, the
        group of each int32 `[M]`, and the key of each group int64 `[G]`.
    """
    rows = tf.cast(tf.where(counts_at)[:, 0], tf.int32)
    unique_keys, groups = tf.unique(tf.gather(keys, rows))
    return rows, groups, unique_keys


def keep_groups(
    rows: tf.Tensor, groups: tf.Tensor, contexts: tf.Tensor, keep: tf.Tensor
) -> BatchGroups:
    """Drops groups and numbers the others anew.

    Args:
        rows: int32 `[M]`.
        groups: int32 `[M]`.
        contexts: int32 `[N, L]`, the short context of every position of the batch.
        keep: bool `[G]`.
    """
    new_numbers = tf.cumsum(tf.cast(keep, tf.int32)) - 1
    stays = tf.gather(keep, groups)
    rows = tf.boolean_mask(rows, stays)
    groups = tf.gather(new_numbers, tf.boolean_mask(groups, stays))
    num_groups = tf.reduce_sum(tf.cast(keep, tf.int32))
    representative = tf.math.unsorted_segment_min(rows, groups, num_groups)
    counts = tf.math.unsorted_segment_sum(tf.ones_like(groups), groups, num_groups)
    return BatchGroups(rows, groups, tf.gather(contexts, representative), counts)
