"""What trained models are worth: perplexity, interpolation, cross-validation."""

from rlm_tf.evaluation.induced import InducedPerplexity, induced_perplexity
from rlm_tf.evaluation.log_probs import restricted_target_log_probs, target_log_probs
from rlm_tf.evaluation.logistic_cross_validation import (
    CrossValidation,
    cross_validate_logistic,
)
from rlm_tf.evaluation.perplexity import (
    CorpusPerplexity,
    evaluate,
    interpolate,
    interpolated_perplexity,
    perplexity_of,
    tune_interpolation,
)
from rlm_tf.evaluation.scaling_law import ScalingLaw, fit_scaling_law

__all__ = [
    "CorpusPerplexity",
    "CrossValidation",
    "InducedPerplexity",
    "ScalingLaw",
    "cross_validate_logistic",
    "evaluate",
    "fit_scaling_law",
    "induced_perplexity",
    "interpolate",
    "interpolated_perplexity",
    "perplexity_of",
    "restricted_target_log_probs",
    "target_log_probs",
    "tune_interpolation",
]
