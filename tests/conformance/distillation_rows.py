"""The rows of the conformance table that belong to distillation."""

from __future__ import annotations

import keras
import tensorflow as tf

from rlm_tf import metrics
from tests.conformance.row import Row

_PROBS = [[0.7, 0.2, 0.1], [0.3, 0.6, 0.1], [0.1, 0.1, 0.8]]


def calibrate(metric: keras.metrics.Metric) -> tf.Tensor:
    """Returns what a metric says of three predictions, one of which counts twice."""
    metric.reset_state()
    metric.update_state([0, 0, 2], _PROBS, sample_weight=[1.0, 2.0, 1.0])
    return tf.convert_to_tensor(metric.result())


DISTILLATION_ROWS = [
    Row(
        "ExpectedCalibrationError",
        lambda: metrics.ExpectedCalibrationError(5, name="c"),
        calibrate,
    ),
    Row("BrierScore", lambda: metrics.BrierScore(name="b"), calibrate),
]
