"""Where each short context occurs in a stream, in compressed sparse rows."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_integer, checked_tokens


class ContextIndex:
    """Finds the occurrences of short contexts, the multiset `extend(sh)` of Eq. (13).

    An occurrence is the position of a short context's newest word. Those with less than
    `min_position` tokens before them are left out, so that a window of
    `min_position + 1` tokens ends in each.

    Args:
        tokens: int `[T]`, the training stream.
        context_length: Words of a short context; of none, 0, every position is an
            occurrence.
        vocabulary_size: V; ids must be below it.
        min_position: First position that counts.

    Raises:
        ValueError: If `tokens` is not a vector of ids in [0, V), if `context_length` is
            negative, or if no position is left.
    """

    def __init__(
        self,
        tokens: np.ndarray,
        context_length: int,
        vocabulary_size: int,
        min_position: int = 0,
    ):
        check_integer("ContextIndex", "context_length", context_length, 0)
        tokens = checked_tokens("ContextIndex", tokens, vocabulary_size, dtype=np.int32)
        first = max(min_position, context_length - 1)
        if len(tokens) <= first:
            raise ValueError(
                f"ContextIndex: `tokens` has {len(tokens)} ids; windows of {first + 1} "
                "need at least as many."
            )
        self.context_length = context_length
        self.vocabulary_size = vocabulary_size
        # Numbers of ever longer contexts: keys stay below T * V, whatever V and length.
        numbers = np.zeros(len(tokens) - first, np.int64)
        keys: list[np.ndarray] = []
        for lag in range(context_length - 1, -1, -1):
            word = tokens[first - lag : len(tokens) - lag].astype(np.int64)
            level_keys, numbers = np.unique(
                numbers * vocabulary_size + word, return_inverse=True
            )
            keys.append(level_keys)
        self.positions = (np.argsort(numbers, kind="stable") + first).astype(np.int32)
        counts = np.bincount(numbers)
        self.row_splits = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        self._keys = [tf.constant(level) for level in keys]
        self._positions = tf.constant(self.positions)
        self._row_splits = tf.constant(self.row_splits)

    def look_up(self, contexts: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns where the occurrences of each context start and how many there are.

        Args:
            contexts: int `[N, context_length]`, oldest word first.

        Returns:
            `(offset, count)`, int32 `[N]`: the occurrences are
            `positions[offset : offset + count]`; count 0 if there are none.
        """
        contexts = tf.cast(contexts, tf.int64)
        numbers = tf.zeros(tf.shape(contexts)[:1], tf.int64)
        known = tf.ones_like(numbers, tf.bool)
        for level, keys in enumerate(self._keys):
            wanted = numbers * self.vocabulary_size + contexts[:, level]
            place = tf.searchsorted(keys, wanted, out_type=tf.int64)
            numbers = tf.minimum(place, tf.size(keys, out_type=tf.int64) - 1)
            known &= tf.equal(tf.gather(keys, numbers), wanted)
        offset = tf.gather(self._row_splits, numbers)
        count = tf.gather(self._row_splits, numbers + 1) - offset
        return offset, tf.where(known, count, tf.zeros_like(count))

    def draw(
        self, contexts: tf.Tensor, randoms: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns occurrences drawn uniformly, with replacement, from the multisets.

        Args:
            contexts: int `[N, context_length]`.
            randoms: int64 `[N, k]`, uniform and non-negative.

        Returns:
            Positions int32 `[N, k]`, and int32 `[N]`, how many there were to draw from;
            where that is 0 the positions mean nothing.
        """
        offset, count = self.look_up(contexts)
        limit = tf.cast(tf.maximum(count, 1), tf.int64)[:, tf.newaxis]
        draws = tf.cast(tf.math.floormod(randoms, limit), tf.int32)
        return tf.gather(self._positions, offset[:, tf.newaxis] + draws), count
