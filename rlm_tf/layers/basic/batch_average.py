"""The moving average of a number that batches have."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from rlm_tf.replicas import all_reduce


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
        mean, weight = batch_mean(values, weights)
        before = self.sums.value
        after = self.decay * before + (1 - self.decay) * tf.stack([mean, 1.0])
        self.sums.assign(tf.where(weight > 0, after, before))


def batch_mean(values: tf.Tensor, weights: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the weighted mean over a batch, that of all replicas, in float32.

    Args:
        values: `[B, ...]`; those without weight may be anything.
        weights: Of that shape.

    Returns:
        The mean `[...]`, 0 where there is no weight, and the sum of the weights.
    """
    weights = tf.cast(weights, tf.float32)
    products = tf.math.multiply_no_nan(tf.cast(values, tf.float32), weights)
    sums = [tf.reduce_sum(products, axis=0), tf.reduce_sum(weights, axis=0)]
    total, weight = tf.unstack(all_reduce(tf.stack(sums)))
    return tf.math.divide_no_nan(total, weight), weight
