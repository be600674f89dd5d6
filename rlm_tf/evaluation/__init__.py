"""What trained models are worth: perplexity, interpolation, cross-validation."""

from rlm_tf.evaluation.calibration import (
    Fidelity,
    FittedTemperature,
    brier_score,
    expected_calibration_error,
    fidelity,
    fit_temperature,
)
from rlm_tf.evaluation.corrupted_text import (
    CorruptedText,
    Detection,
    corrupt,
    detect,
)
from rlm_tf.evaluation.detection import (
    DetectionScores,
    detection_scores,
    glue_average,
)
from rlm_tf.evaluation.dynamic import (
    DynamicEvaluation,
    GradientStatistics,
    gradient_statistics,
)
from rlm_tf.evaluation.feature_minimiser import feature_minimiser
from rlm_tf.evaluation.gradient_signal import GradientSignal, gradient_signal
from rlm_tf.evaluation.gradient_variance import (
    GradientVariance,
    VarianceRatio,
    gradient_variance,
    variance_ratio,
)
from rlm_tf.evaluation.induced import InducedPerplexity, induced_perplexity
from rlm_tf.evaluation.information.model_information import (
    ModelInformation,
    model_information,
)
from rlm_tf.evaluation.information.segment_information import (
    Estimate,
    SegmentInformation,
    segment_information,
)
from rlm_tf.evaluation.latent_usage import LatentUsage, latent_usage, quantised_usage
from rlm_tf.evaluation.log_probs import restricted_target_log_probs, target_log_probs
from rlm_tf.evaluation.logistic_cross_validation import (
    CrossValidation,
    cross_validate_logistic,
)
from rlm_tf.evaluation.monte_carlo import MonteCarloDropout, has_dropout
from rlm_tf.evaluation.pareto import least_costs, pareto_frontier
from rlm_tf.evaluation.perplexity import (
    CorpusPerplexity,
    evaluate,
    interpolate,
    interpolated_perplexity,
    perplexity_of,
    search_temperature,
    tune_floor,
    tune_interpolation,
)
from rlm_tf.evaluation.pseudo_perplexity import pseudo_perplexity
from rlm_tf.evaluation.reliability import Reliability, reliability
from rlm_tf.evaluation.reverse_perplexity import (
    ReversePerplexity,
    reverse_perplexity,
    unigram_text,
)
from rlm_tf.evaluation.scaling_law import ScalingLaw, fit_scaling_law
from rlm_tf.evaluation.token_fidelity import (
    TokenFidelity,
    frequency_groups,
    token_fidelity,
)
from rlm_tf.evaluation.two_sided_n_gram import MaskedScores, TwoSidedNGram

__all__ = [
    "CorpusPerplexity",
    "CorruptedText",
    "CrossValidation",
    "Detection",
    "DetectionScores",
    "DynamicEvaluation",
    "Estimate",
    "Fidelity",
    "FittedTemperature",
    "GradientSignal",
    "GradientStatistics",
    "GradientVariance",
    "InducedPerplexity",
    "LatentUsage",
    "MaskedScores",
    "ModelInformation",
    "MonteCarloDropout",
    "Reliability",
    "ReversePerplexity",
    "ScalingLaw",
    "SegmentInformation",
    "TokenFidelity",
    "TwoSidedNGram",
    "VarianceRatio",
    "brier_score",
    "corrupt",
    "cross_validate_logistic",
    "detect",
    "detection_scores",
    "evaluate",
    "expected_calibration_error",
    "feature_minimiser",
    "fidelity",
    "fit_scaling_law",
    "fit_temperature",
    "frequency_groups",
    "glue_average",
    "gradient_signal",
    "gradient_statistics",
    "gradient_variance",
    "has_dropout",
    "induced_perplexity",
    "interpolate",
    "interpolated_perplexity",
    "latent_usage",
    "least_costs",
    "model_information",
    "pareto_frontier",
    "perplexity_of",
    "pseudo_perplexity",
    "quantised_usage",
    "reliability",
    "restricted_target_log_probs",
    "reverse_perplexity",
    "search_temperature",
    "segment_information",
    "target_log_probs",
    "token_fidelity",
    "tune_floor",
    "tune_interpolation",
    "unigram_text",
    "variance_ratio",
]
