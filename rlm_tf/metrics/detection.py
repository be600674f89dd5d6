"""How well replaced tokens are found, over batches."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from rlm_tf.metrics.declared import declared


@keras.saving.register_keras_serializable("rlm_tf")
class DetectionF1(keras.metrics.Metric):
    """F1 of the tokens that are said to be replaced, from probability 0.5 on.

    Args:
        name: Of the metric.
        **kwargs: Of `keras.metrics.Metric`.
    """

    def __init__(self, name: str = "f1", **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.hits, self.claims, self.replaced = (
            self.add_variable((), "zeros", name=each)
            for each in ("hits", "claims", "replaced")
        )
        declared(self, "up")

    def update_state(
        self, labels: tf.Tensor, probs: tf.Tensor, sample_weight: Any = None
    ) -> None:
        """Counts tokens.

        Args:
            labels: `[...]`, 1 or True where replaced.
            probs: `[...]`, of having been replaced.
            sample_weight: `[...]`, 0 where there is no token; None: nowhere.
        """
        true = tf.cast(labels, tf.float32)
        said = tf.cast(tf.convert_to_tensor(probs) >= 0.5, tf.float32)
        if sample_weight is not None:
            weights = tf.cast(sample_weight, tf.float32)
            true, said = true * weights, said * weights
        self.hits.assign_add(tf.reduce_sum(true * said))
        self.claims.assign_add(tf.reduce_sum(said))
        self.replaced.assign_add(tf.reduce_sum(true))

    def result(self) -> tf.Tensor:
        """Returns the score, 0 where there is nothing."""
        total = self.claims.value + self.replaced.value
        return tf.math.divide_no_nan(2 * self.hits.value, total)
