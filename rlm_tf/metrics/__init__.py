"""Keras metrics, and what they say of themselves."""

from rlm_tf.metrics.calibration import (
    Agreement,
    BrierScore,
    ExpectedCalibrationError,
    NegativeLogLikelihood,
    TeacherDivergence,
)
from rlm_tf.metrics.declared import declared
from rlm_tf.metrics.detection import DetectionF1
from rlm_tf.metrics.mine_bound import MineBound
from rlm_tf.metrics.perplexity import BitsPerCharacter, Perplexity
from rlm_tf.metrics.quantiles import Quantiles

__all__ = [
    "Agreement",
    "BitsPerCharacter",
    "BrierScore",
    "DetectionF1",
    "ExpectedCalibrationError",
    "MineBound",
    "NegativeLogLikelihood",
    "Perplexity",
    "Quantiles",
    "TeacherDivergence",
    "declared",
]
