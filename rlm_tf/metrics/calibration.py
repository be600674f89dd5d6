"""Calibration over batches: sums by bins of confidence, squared distances."""

from __future__ import annotations

from typing import Any, Literal

import keras
import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_integer, check_option
from rlm_tf.metrics.declared import declared
from rlm_tf.metrics.perplexity import flat


@keras.saving.register_keras_serializable("rlm_tf")
class ExpectedCalibrationError(keras.metrics.Metric):
    """The expected calibration error of everything seen since the last reset.

    As `rlm_tf.evaluation.expected_calibration_error` with bins of equal width. Three
    sums a bin are kept, whatever the number of examples and classes; bins of equal mass
    would need them all.

    Args:
        bins: Number of bins.
        edges: Which edge of a bin is its own: "right" or "left"; see `reliability`.
        name: Of the metric.
        **kwargs: Of `keras.metrics.Metric`.

    Raises:
        ValueError: If `bins` is no positive integer, or `edges` another.
    """

    def __init__(
        self,
        bins: int = 15,
        name: str = "calibration_error",
        *,
        edges: Literal["left", "right"] = "right",
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        check_integer(type(self).__name__, "bins", bins, 1)
        check_option(type(self).__name__, "edges", edges, ("left", "right"))
        self.bins = bins
        self.edges = edges
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
        if self.edges == "left":
            places = tf.cast(confidences * self.bins, tf.int32)
            places = tf.minimum(places, self.bins - 1)
        else:
            inner = tf.constant(np.linspace(0, 1, self.bins + 1)[1:-1], tf.float32)
            places = tf.searchsorted(inner, confidences, side="left")
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

    def by_bins(self) -> dict[str, np.ndarray]:
        """Returns what a reliability diagram shows, of bins that are not empty.

        As `rlm_tf.evaluation.reliability`: mean `confidence`, `accuracy` and `counts`,
        which are sums of weights, `[K]` each.
        """
        counts, confidences, right = (
            np.asarray(each.value, np.float64)
            for each in (self.counts, self.confidences, self.right)
        )
        kept = counts > 0
        return {
            "confidence": confidences[kept] / counts[kept],
            "accuracy": right[kept] / counts[kept],
            "counts": counts[kept],
        }

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "bins": self.bins, "edges": self.edges}


class _OfProbabilities(keras.metrics.Mean):
    """A mean over predictions, of any leading axes.

    Args:
        name: Of the metric.
        dtype: Dtype or policy of the accumulators.
    """

    def get_config(self) -> dict[str, Any]:
        return {"name": self.name, "dtype": self.dtype}


def _of_label(labels: tf.Tensor, probs: tf.Tensor) -> tf.Tensor:
    """Returns the probability of each label, `[...]` of `[..., K]`."""
    labels = tf.cast(labels, tf.int32)
    return tf.gather(probs, labels, axis=-1, batch_dims=labels.shape.rank)


@keras.saving.register_keras_serializable("rlm_tf")
class BrierScore(_OfProbabilities):
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
        own = _of_label(labels, probs)
        distances = tf.reduce_sum(probs**2, axis=-1) - 2 * own + 1
        super().update_state(*flat(distances, sample_weight))


@keras.saving.register_keras_serializable("rlm_tf")
class NegativeLogLikelihood(_OfProbabilities):
    """The mean of -ln p(label), nats, of everything since the last reset.

    Args:
        name: Of the metric.
        dtype: Dtype or policy of the accumulators.
    """

    _direction = "down"

    def __init__(self, name: str = "nll", dtype: Any = None) -> None:
        super().__init__(name=name, dtype=dtype)

    def update_state(
        self, labels: tf.Tensor, probs: tf.Tensor, sample_weight: Any = None
    ) -> None:
        """Adds predictions; arguments as of `BrierScore`."""
        own = _of_label(labels, tf.convert_to_tensor(probs))
        super().update_state(*flat(-tf.math.log(own), sample_weight))


@keras.saving.register_keras_serializable("rlm_tf")
class Agreement(_OfProbabilities):
    """How often a student's most probable class is its teacher's.

    As `agreement` of `rlm_tf.evaluation.fidelity`.

    Args:
        name: Of the metric.
        dtype: Dtype or policy of the accumulators.
    """

    _direction = "up"

    def __init__(self, name: str = "agreement", dtype: Any = None) -> None:
        super().__init__(name=name, dtype=dtype)

    def update_state(
        self, teacher: tf.Tensor, student: tf.Tensor, sample_weight: Any = None
    ) -> None:
        """Adds predictions.

        Args:
            teacher: Probabilities or logits `[..., K]`.
            student: Likewise.
            sample_weight: `[...]`; None: each counts once.
        """
        best = [tf.argmax(each, axis=-1) for each in (teacher, student)]
        same = tf.cast(tf.equal(*best), tf.float32)
        super().update_state(*flat(same, sample_weight))


@keras.saving.register_keras_serializable("rlm_tf")
class TeacherDivergence(_OfProbabilities):
    """The mean of KL(teacher || student), nats: `divergence` of `fidelity`.

    Args:
        name: Of the metric.
        dtype: Dtype or policy of the accumulators.
    """

    _direction = "down"

    def __init__(self, name: str = "teacher_divergence", dtype: Any = None) -> None:
        super().__init__(name=name, dtype=dtype)

    def update_state(
        self, teacher: tf.Tensor, student: tf.Tensor, sample_weight: Any = None
    ) -> None:
        """Adds predictions.

        Args:
            teacher: Probabilities `[..., K]`.
            student: Likewise.
            sample_weight: `[...]`; None: each counts once.
        """
        p, q = (tf.convert_to_tensor(each) for each in (teacher, student))
        # 0 ln 0 is 0, and p ln(p / 0) infinite.
        divergence = tf.reduce_sum(tf.math.xlogy(p, p) - tf.math.xlogy(p, q), axis=-1)
        super().update_state(*flat(divergence, sample_weight))
