"""The moving average of a number that batches have."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf


class BatchAverage(keras.layers.Layer):
    """An exponentially weighted mean over batches, without a bias to its start.

    Single precision; the batch is that of all replicas.

    Args:
        decay: How much of the average a batch leaves, in [0, 1).
        **kwargs: Of `keras.layers.Layer`.
    """

    def __init__(self, decay: float = 0.9, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.decay = decay
        # The weighted sum, and the sum of its weights.
        self.sums = self.add_weight(
            name="sums",
            shape=(2,),
            initializer="zeros",
            dtype="float32",
            autocast=False,
            trainable=False,
            aggregation="only_first_replica",
        )
        self.built = True

    def value(self) -> tf.Tensor:
        """Returns the average, 0 before the first batch."""
        total, weight = tf.unstack(self.sums.value)
        return tf.math.divide_no_nan(total, weight)

    def update(self, values: tf.Tensor, weights: tf.Tensor) -> None:
        """Takes in a batch.

        Args:
            values: `[B]`; those without weight may be anything.
            weights: `[B]`; a batch without any changes nothing.
        """
        weights = tf.cast(weights, tf.float32)
        products = tf.math.multiply_no_nan(tf.cast(values, tf.float32), weights)
        sums = tf.stack([tf.reduce_sum(products), tf.reduce_sum(weights)])
        context = tf.distribute.get_replica_context()
        if context is not None and context.num_replicas_in_sync > 1:
            sums = context.all_reduce(tf.distribute.ReduceOp.SUM, sums)
        batch = tf.stack([tf.math.divide_no_nan(sums[0], sums[1]), 1.0])
        before = self.sums.value
        after = self.decay * before + (1 - self.decay) * batch
        self.sums.assign(tf.where(sums[1] > 0, after, before))
