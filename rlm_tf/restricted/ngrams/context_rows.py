"""What back-off tables have of contexts beside shorter ones, inside graphs."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import keras
import tensorflow as tf

# The weights of a level, by name; see `BackoffModel`.
Level: TypeAlias = dict[str, keras.Variable]


def as_tensor(variable: keras.Variable) -> tf.Tensor:
    """Returns the value of a variable."""
    return tf.convert_to_tensor(variable)


class Entries(NamedTuple):
    """Words of contexts, their row among these, and their extra probabilities."""

    rows: tf.Tensor
    words: tf.Tensor
    extra: tf.Tensor


def entries_of(level: Level, number: tf.Tensor) -> Entries:
    """Returns the entries of contexts `[U]`, row by row."""
    splits = as_tensor(level["row_splits"])
    entries = tf.ragged.range(tf.gather(splits, number), tf.gather(splits, number + 1))
    # Half the time of value_rowids(), which pads to the longest range.
    row = tf.searchsorted(
        entries.row_splits[1:],
        tf.range(entries.row_splits[-1]),
        side="right",
        out_type=tf.int64,
    )
    words = tf.gather(as_tensor(level["words"]), entries.values)
    extra = tf.gather(as_tensor(level["extra"]), entries.values)
    return Entries(row, tf.cast(words, tf.int64), tf.cast(extra, tf.float32))


def extra_rows(level: Level, number: tf.Tensor, size: int) -> tf.Tensor:
    """Returns the extra probabilities of contexts `[U]` as float32 `[U, size]`."""
    row, words, extra = entries_of(level, number)
    count = tf.size(number, tf.int64)
    # Three times as fast on a CPU as scattering into rows that are there already.
    table = tf.math.unsorted_segment_sum(extra, row * size + words, count * size)
    return tf.reshape(table, [count, size])


class LongRows(NamedTuple):
    """The contexts of a level that most words follow, as rows over all words.

    Few frequent words have most of the entries that a text's positions need.

    Attributes:
        numbers: `[K]`, of the contexts.
        rows: float32 `[K, V]`, their extra probabilities.
    """

    numbers: tf.Tensor
    rows: tf.Tensor

    @classmethod
    def of(cls, level: Level, most: int, size: int) -> LongRows:
        """Returns at most `most` of them."""
        splits = as_tensor(level["row_splits"])
        count = min(most, splits.shape[0] - 1)
        numbers = tf.math.top_k(splits[1:] - splits[:-1], count).indices
        rows = extra_rows(level, tf.cast(numbers, tf.int64), size)
        return cls(tf.cast(numbers, tf.int64), tf.ensure_shape(rows, [count, size]))

    def are(self, number: tf.Tensor) -> tf.Tensor:
        """Returns which of them, if any, each of contexts `[N]` is: bool `[N, K]`."""
        return number[:, tf.newaxis] == self.numbers
