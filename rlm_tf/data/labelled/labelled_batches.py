"""Batches of labelled texts for classifiers."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_integer
from rlm_tf.data.labelled.encoded_rows import encoded_rows
from rlm_tf.data.labelled.labelled_texts import LabelledTexts
from rlm_tf.data.text.special_tokens import special_ids
from rlm_tf.data.text.vocabulary import Vocabulary
from rlm_tf.host_tensors import host_tensor

# Texts that are encoded at once.
_ROWS = 4096


class LabelledBatches:
    """Batches `((tokens, segments), labels)` of labelled texts.

    Used as `ResumableBatches(LabelledBatches(...))` (`rlm_tf.training`). Examples come
    in another order in each epoch, a function of (seed, epoch); those that do not fill
    a batch are left out of that epoch. If there are fewer than one batch, all are one.

    Args:
        data: The texts.
        vocabulary: Of an encoder, see `encoder_vocabulary`.
        length: T, tokens of a row; longer texts are cut.
        batch_size: B.
        seed: Of the order.

    Attributes:
        tokens: int32 `[N, T]`.
        segments: int32 `[N, T]`, 1 for tokens of a second text.
        labels: `[N]`.
        cut: bool `[N]`, texts that do not fit.
        steps: Batches of an epoch.

    Raises:
        ValueError: If there is no example, or a number out of range.
    """

    def __init__(
        self,
        data: LabelledTexts,
        vocabulary: Vocabulary,
        length: int,
        batch_size: int,
        *,
        seed: int = 0,
    ) -> None:
        check_integer("LabelledBatches", "batch_size", batch_size, 1)
        check_integer("LabelledBatches", "seed", seed, 0)
        if not len(data):
            raise ValueError("LabelledBatches: there is no example.")
        self.batch_size = min(batch_size, len(data))
        self.seed = seed
        self.labels = data.labels
        ids, tables = special_ids(vocabulary), vocabulary.graph_tables()
        found = []
        for first in range(0, len(data), _ROWS):
            part = slice(first, first + _ROWS)
            second = data.texts_b
            found.append(
                encoded_rows(
                    tables,
                    ids,
                    tf.constant(data.texts[part]),
                    None if second is None else tf.constant(second[part]),
                    length,
                )
            )
        self.tokens, self.segments, self.cut = (
            np.concatenate([np.asarray(part) for part in parts])
            for parts in zip(*found, strict=True)
        )
        self.steps = len(data) // self.batch_size

    def dataset(self, epoch: Any = 0, start_step: Any = 0) -> tf.data.Dataset:
        """Returns the batches of an epoch from a step on, in a random order."""
        seed = tf.stack([tf.constant(self.seed, tf.int64), tf.cast(epoch, tf.int64)])
        order = tf.random.experimental.stateless_shuffle(
            tf.range(len(self.labels)), seed
        )
        batches = tf.reshape(
            order[: self.steps * self.batch_size], [self.steps, self.batch_size]
        )
        rows = tf.data.Dataset.from_tensor_slices(
            batches[tf.cast(start_step, tf.int32) :]
        )
        return self._looked_up(rows)

    def in_order(self) -> tf.data.Dataset:
        """Returns batches of all examples, in their order; the last may be smaller."""
        rows = tf.data.Dataset.range(len(self.labels)).batch(self.batch_size)
        return self._looked_up(rows)

    def _looked_up(self, rows: tf.data.Dataset) -> tf.data.Dataset:
        arrays = self.tokens, self.segments, self.labels
        parts = [host_tensor(array) for array in arrays]

        def look_up(rows: tf.Tensor) -> Any:
            tokens, segments, labels = (tf.gather(part, rows) for part in parts)
            return (tokens, segments), labels

        return rows.map(look_up)
