"""Batches of whole sentences of about one length."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from rlm_tf.checks import check_integer, checked_tokens
from rlm_tf.host_tensors import host_tensor
from rlm_tf.padding import PADDING

# So many batches are sorted by length together.
_POOL = 50


class SentenceBatches:
    """Cuts a stream of tokens into sentences, and these into batches.

    Sentences end with their end token, or where they are cut off after the longest
    length allowed, without it. Batches are padded with -1 to their longest sentence. In
    every epoch sentences come in another order, those of one batch being of about one
    length; what does not fill a batch is left out of that epoch.

    Args:
        tokens: int `[N]`.
        end_id: Id of the end of a sentence.
        batch_size: B.
        most_tokens: Tokens of a sentence, end included.
        seed: Of the order.

    Attributes:
        sentences: int32 `[S, most_tokens]`, padded with -1.
        steps: Batches of an epoch.

    Raises:
        ValueError: If a number is not positive, or there are fewer sentences than a
            batch has.
    """

    def __init__(
        self,
        tokens: npt.ArrayLike,
        end_id: int,
        batch_size: int,
        most_tokens: int,
        seed: int = 0,
    ) -> None:
        check_integer("SentenceBatches", "batch_size", batch_size, 1)
        check_integer("SentenceBatches", "most_tokens", most_tokens, 1)
        stream = checked_tokens("SentenceBatches", tokens, np.iinfo(np.int32).max)
        ends = np.flatnonzero(stream == end_id) + 1
        parts = np.split(stream, ends)
        parts = [part[:most_tokens] for part in parts if len(part)]
        if len(parts) < batch_size:
            raise ValueError(
                f"SentenceBatches: `tokens` must have at least `batch_size` = "
                f"{batch_size} sentences, found {len(parts)}."
            )
        self.end_id = end_id
        self.batch_size = batch_size
        self.most_tokens = most_tokens
        self.seed = seed
        self.sentences = np.full((len(parts), most_tokens), PADDING, np.int32)
        for row, part in zip(self.sentences, parts, strict=True):
            row[: len(part)] = part
        self.steps = len(parts) // batch_size

    @property
    def num_tokens(self) -> int:
        """Tokens of all sentences as they are cut."""
        return int(np.count_nonzero(self.sentences != PADDING))

    def dataset(self, epoch: Any = 0, start_step: Any = 0) -> tf.data.Dataset:
        """Returns the batches int32 `[B, T]` of an epoch from a step on."""
        lengths = host_tensor((self.sentences != PADDING).sum(axis=1, dtype=np.int64))
        seed = tf.stack([tf.constant(self.seed, tf.int64), tf.cast(epoch, tf.int64)])
        count = self.steps * self.batch_size
        shuffle = tf.random.experimental.stateless_shuffle
        order = shuffle(tf.range(len(self.sentences)), seed)[:count]
        pool = tf.range(count, dtype=tf.int64) // (_POOL * self.batch_size)
        longest = self.most_tokens + 1
        key = pool * longest + tf.gather(lengths, order)
        order = tf.gather(order, tf.argsort(key, stable=True))
        batches = tf.reshape(order, [self.steps, self.batch_size])
        batches = shuffle(batches, seed + 1)[tf.cast(start_step, tf.int32) :]
        sentences = host_tensor(self.sentences)

        def look_up(rows: tf.Tensor) -> tf.Tensor:
            found = tf.gather(sentences, rows)
            steps = tf.reduce_max(tf.gather(lengths, rows))
            batch = found[:, :steps]
            batch.set_shape([self.batch_size, None])
            return batch

        return tf.data.Dataset.from_tensor_slices(batches).map(look_up)

    def in_order_of_length(self, count: int | None = None) -> Iterator[np.ndarray]:
        """Yields batches `[B, T]` of all sentences once; the last may be smaller.

        Args:
            count: Only the first so many sentences of the text, None for all.
        """
        lengths = (self.sentences[:count] != PADDING).sum(axis=1)
        order = np.argsort(lengths, kind="stable")
        for first in range(0, len(order), self.batch_size):
            rows = order[first : first + self.batch_size]
            yield self.sentences[rows, : lengths[rows].max()]
