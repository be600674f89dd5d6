"""What a trained language model is worth: perplexity, interpolation, induced models."""

from rlm_tf.evaluation.induced import InducedPerplexity, induced_perplexity
from rlm_tf.evaluation.log_probs import restricted_target_log_probs, target_log_probs
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
    "InducedPerplexity",
    "ScalingLaw",
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
