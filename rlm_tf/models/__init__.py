"""Keras models, one for each objective."""

from rlm_tf.models.in_batch_contexts import InBatchContexts
from rlm_tf.models.induced_model_matching import InducedModelMatching
from rlm_tf.models.objective_model import ObjectiveModel
from rlm_tf.models.recurrent_language_model import RecurrentLanguageModel
from rlm_tf.models.sampled_contexts import SampledContexts
from rlm_tf.models.term import (
    Term,
    coefficient_from_ratio,
    ratio_from_coefficient,
)

__all__ = [
    "InBatchContexts",
    "InducedModelMatching",
    "ObjectiveModel",
    "RecurrentLanguageModel",
    "SampledContexts",
    "Term",
    "coefficient_from_ratio",
    "ratio_from_coefficient",
]
