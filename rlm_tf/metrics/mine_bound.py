"""The bound of mutual information that scores of pairs give, over many batches."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

# Of scores: e^500 is a number in double precision, and so is the sum of many.
_MOST = 500.0


@keras.saving.register_keras_serializable("rlm_tf")
class MineBound(keras.metrics.Metric):
    """mean T+ - ln mean e^(T-), over all pairs since the last reset, in nats.

    The bound of Donsker and Varadhan of scores T+ of pairs that occur together and T-
    of pairs that do not. On pairs that the critic learns from it is too high. Scores
    count up to +-500; without any the result is 0.

    Args:
        name: Of the log.
        dtype: Dtype or policy of the result.
    """

    def __init__(self, name: str = "mine", dtype: Any = None) -> None:
        super().__init__(name=name, dtype=dtype)
        self.joint, self.joint_weight, self.marginal, self.marginal_weight = (
            self.add_variable([], "zeros", dtype="float64", name=each)
            for each in ("joint", "joint_weight", "marginal", "marginal_weight")
        )

    def update_state(
        self, joint: tf.Tensor, marginal: tf.Tensor, weights: tf.Tensor | None = None
    ) -> None:
        """Adds scores.

        Args:
            joint: T+, `[B]`.
            marginal: T-, `[B, K]`.
            weights: Of the rows, `[B]`; None: ones.
        """
        joint, marginal = (
            tf.clip_by_value(tf.cast(values, tf.float64), -_MOST, _MOST)
            for values in (joint, marginal)
        )
        weights = tf.ones_like(joint) if weights is None else weights
        weights = tf.cast(weights, tf.float64)
        number = tf.cast(tf.shape(marginal)[1], tf.float64)
        self.joint.assign_add(tf.reduce_sum(weights * joint))
        self.joint_weight.assign_add(tf.reduce_sum(weights))
        exponentials = tf.reduce_sum(tf.exp(marginal), axis=1)
        self.marginal.assign_add(tf.reduce_sum(weights * exponentials))
        self.marginal_weight.assign_add(number * tf.reduce_sum(weights))

    def result(self) -> tf.Tensor:
        mean = tf.math.divide_no_nan(
            tf.convert_to_tensor(self.joint), tf.convert_to_tensor(self.joint_weight)
        )
        weight = tf.convert_to_tensor(self.marginal_weight)
        some = weight > 0
        exponentials = tf.where(some, tf.convert_to_tensor(self.marginal), 1.0)
        log_mean = tf.math.log(exponentials / tf.where(some, weight, 1.0))
        return tf.cast(mean - log_mean, self.dtype)

    def get_config(self) -> dict[str, Any]:
        return {"name": self.name, "dtype": self.dtype}
