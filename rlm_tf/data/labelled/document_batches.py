"""Batches of documents as rows of token ids."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from rlm_tf.checks import check_integer
from rlm_tf.host_tensors import host_tensor


class DocumentBatches:
    """Batches `((tokens, ids), labels)`, with weights behind if there are any.

    Used as `ResumableBatches(DocumentBatches(...), transform=...)`
    (`rlm_tf.training`). Documents come in another order in each epoch, a function of
    (seed, epoch), and all of them: the last batch may be smaller. Their places are
    their ids, by which a transform knows them (`rlm_tf.layers.WordDeletion`).

    Args:
        tokens: int `[N, T]`, rows of token ids; a tensor of the host
            (`host_tensor`) is not copied.
        labels: int `[N]`, or probabilities `[N, K]`.
        batch_size: B.
        rows: int `[M]`, which rows of `tokens` are the documents, in place of all; then
            there are M labels and weights, and ids are places in `rows`.
        weights: float `[N]`; None: all alike.
        seed: Of the order.

    Attributes:
        steps: Batches of an epoch.

    Raises:
        ValueError: If shapes do not fit, or a number is out of range.
    """

    def __init__(
        self,
        tokens: npt.ArrayLike,
        labels: npt.ArrayLike,
        batch_size: int,
        *,
        rows: npt.ArrayLike | None = None,
        weights: npt.ArrayLike | None = None,
        seed: int = 0,
    ) -> None:
        name = type(self).__name__
        check_integer(name, "batch_size", batch_size, 1)
        check_integer(name, "seed", seed, 0)
        self.tokens: Any = tokens
        if not tf.is_tensor(tokens):
            self.tokens = compact_tokens(tokens)
        self.labels = np.asarray(labels)
        self.rows = None if rows is None else np.asarray(rows, np.int32)
        self.weights = None if weights is None else np.asarray(weights, np.float32)
        number, shape = len(self.labels), list(self.tokens.shape)
        documents = shape[0] if self.rows is None else len(self.rows)
        if len(shape) != 2 or documents != number or not number:
            raise ValueError(
                f"{name}: `tokens` must be [N, T] and `labels` [N], N > 0, or as many "
                f"as `rows`; found {shape} and {list(self.labels.shape)}."
            )
        if self.weights is not None and self.weights.shape != (number,):
            raise ValueError(
                f"{name}: `weights` must be [{number}], found "
                f"{list(self.weights.shape)}."
            )
        self.batch_size = batch_size
        self.seed = seed
        self.steps = -(-number // batch_size)

    def dataset(self, epoch: Any = 0, start_step: Any = 0) -> tf.data.Dataset:
        """Returns the batches of an epoch from a step on, in a random order."""
        seed = tf.stack([tf.constant(self.seed, tf.int64), tf.cast(epoch, tf.int64)])
        order = tf.random.experimental.stateless_shuffle(
            tf.range(len(self.labels)), seed
        )
        first = tf.cast(start_step, tf.int64) * self.batch_size
        ids = tf.data.Dataset.from_tensor_slices(order).skip(first)
        return self._looked_up(ids.batch(self.batch_size))

    def in_order(self) -> tf.data.Dataset:
        """Returns batches of all documents, in their order."""
        ids = tf.data.Dataset.range(len(self.labels), output_type=tf.int32)
        return self._looked_up(ids.batch(self.batch_size))

    def _looked_up(self, rows: tf.data.Dataset) -> tf.data.Dataset:
        tokens = host_tensor(self.tokens)
        places = None if self.rows is None else host_tensor(self.rows)
        own = [self.labels] if self.weights is None else [self.labels, self.weights]
        parts = [host_tensor(array) for array in own]

        def look_up(ids: tf.Tensor) -> Any:
            found = tf.gather(tokens, ids if places is None else tf.gather(places, ids))
            others = [tf.gather(part, ids) for part in parts]
            return ((tf.cast(found, tf.int32), ids), *others)

        return rows.map(look_up)


def compact_tokens(tokens: npt.ArrayLike) -> np.ndarray:
    """Returns token ids in as few bytes as they need: uint16 or int32."""
    found = np.asarray(tokens)
    if found.dtype == np.uint16:
        return found
    if found.size and (found.min() < 0 or found.max() > np.iinfo(np.uint16).max):
        return found.astype(np.int32)
    return found.astype(np.uint16)
