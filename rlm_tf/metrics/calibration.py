"""Calibration over batches: sums by bins of confidence, squared distances."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from rlm_tf.checks import check_integer
from rlm_tf.metrics.declared import declared
from rlm_tf.metrics.perplexity import flat


@keras.saving.register_keras_serializable("rlm_tf")
class ExpectedCalibrationError(keras.metrics.Metric):
    """The expected calibration error of everything seen since the last reset.

    As `rlm_tf.evaluation.expected_calibration_error`: bins of equal width own their
    right edge. Three sums a bin are kept, whatever the number of examples and classes.

    Args:
        bins: Number of bins.
        name: Of the metric.
        **kwargs: Of `keras.metrics.Metric`.

    Raises:
        ValueError: If `bins` is no positive integer.
    """

    def __init__(
        self, bins: int = 15, name: str = "calibration_error", **kwargs: Any
    ) -> None:
        super().__init__(name=name, **kwargs)
        check_integer(type(self).__name__, "bins", bins, 1)
        self.bins = bins
        self.counts, self.confidences, self.right = (
            self.add_variable((bins,), "zeros", name=each)
            for each in ("counts", "confidences", "right")
        )
        declared(self, "down")

    def update_state(
        self, labels: tf.Tensor, probs: tf.Tensor, sample_weight: Any = None
    ) -> None:
        """Adds predictions.

        Args:
            labels: Int `[...]`.
            probs: `[..., K]`.
            sample_weight: `[...]`; None: each counts once.
        """
        probs = tf.cast(probs, tf.float32)
        best = tf.argmax(probs, axis=-1, output_type=tf.int64)
        right = tf.cast(best == tf.cast(labels, tf.int64), tf.float32)
        confidences, weights = flat(tf.reduce_max(probs, axis=-1), sample_weight)
        if weights is None:
            weights = tf.ones_like(confidences)
        weights = tf.cast(weights, tf.float32)
        places = tf.cast(tf.math.ceil(confidences * self.bins), tf.int32) - 1
        places = tf.clip_by_value(places, 0, self.bins - 1)
        for total, values in (
            (self.counts, tf.ones_like(confidences)),
            (self.confidences, confidences),
            (self.right, tf.reshape(right, [-1])),
        ):
            sums = tf.math.unsorted_segment_sum(weights * values, places, self.bins)
            total.assign_add(sums)

    def result(self) -> tf.Tensor:
        """Returns the error, 0 where there is nothing."""
        gaps = tf.abs(self.confidences.value - self.right.value)
        return tf.math.divide_no_nan(
            tf.reduce_sum(gaps), tf.reduce_sum(self.counts.value)
        )

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "bins": self.bins}


@keras.saving.register_keras_serializable("rlm_tf")
class BrierScore(keras.metrics.Mean):
    """`rlm_tf.evaluation.brier_score` of everything since the last reset.

    Args:
        name: Of the metric.
        dtype: Dtype or policy of the accumulators.
    """

    _direction = "down"

    def __init__(self, name: str = "brier", dtype: Any = None) -> None:
        super().__init__(name=name, dtype=dtype)

    def update_state(
        self, labels: tf.Tensor, probs: tf.Tensor, sample_weight: Any = None
    ) -> None:
        """Adds predictions.

        Args:
            labels: Int `[...]`.
            probs: `[..., K]`.
            sample_weight: `[...]`; None: each counts once.
        """
        probs = tf.convert_to_tensor(probs)
        labels = tf.cast(labels, tf.int32)
        own = tf.gather(probs, labels, axis=-1, batch_dims=labels.shape.rank)
        distances = tf.reduce_sum(probs**2, axis=-1) - 2 * own + 1
        super().update_state(*flat(distances, sample_weight))

    def get_config(self) -> dict[str, Any]:
        return {"name": self.name, "dtype": self.dtype}
