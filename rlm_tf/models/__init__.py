"""Keras models, one for each objective."""

from rlm_tf.models.objective_model import ObjectiveModel
from rlm_tf.models.term import (
    Term,
    coefficient_from_ratio,
    ratio_from_coefficient,
)

__all__ = [
    "ObjectiveModel",
    "Term",
    "coefficient_from_ratio",
    "ratio_from_coefficient",
]
