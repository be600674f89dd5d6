"""The rows of the conformance table that belong to distillation."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from rlm_tf import metrics, models
from tests.conformance.row import Row

_PROBS = [[0.7, 0.2, 0.1], [0.3, 0.6, 0.1], [0.1, 0.1, 0.8]]

VECTORS = np.array([[0.5, -1.0, 2.0], [1.0, 0.0, -0.5]], np.float32)
# Two examples, of which the second counts half.
LABELLED = ((VECTORS, np.array([0, 1])), np.array([1, 0]), np.array([1, 0.5], "f4"))


def calibrate(metric: keras.metrics.Metric) -> tf.Tensor:
    """Returns what a metric says of three predictions, one of which counts twice."""
    metric.reset_state()
    metric.update_state([0, 0, 2], _PROBS, sample_weight=[1.0, 2.0, 1.0])
    return tf.convert_to_tensor(metric.result())


def _teacher() -> models.StudentOrientedTeacher:
    first = keras.initializers.GlorotUniform(seed=2)
    classifier = keras.Sequential(
        [keras.Input([3]), keras.layers.Dense(2, kernel_initializer=first)]
    )
    return models.StudentOrientedTeacher(
        classifier,
        lipschitz=0.1,
        # What it needs is no part of files.
        consistency=0.0,
        ramp="cosine",
        epochs=3,
        norm="inf",
        variant="authors",
    )


DISTILLATION_ROWS = [
    Row(
        "StudentOrientedTeacher",
        _teacher,
        lambda model: model(VECTORS),
        VECTORS,
        LABELLED,
    ),
    Row(
        "ExpectedCalibrationError",
        lambda: metrics.ExpectedCalibrationError(5, name="c"),
        calibrate,
    ),
    Row("BrierScore", lambda: metrics.BrierScore(name="b"), calibrate),
]
