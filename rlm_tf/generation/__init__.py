"""Sampling text from language models, in a graph and with stateless seeds."""

from rlm_tf.generation.entropy_calibration import (
    MOST_CALIBRATION,
    CalibrationFit,
    calibrate,
    fit_calibration,
)
from rlm_tf.generation.filters import (
    filter_logits,
    keep_eta,
    keep_nucleus,
    keep_top_k,
    keep_typical,
    scale_by_temperature,
)
from rlm_tf.generation.generate import generate
from rlm_tf.generation.generate_text import generate_text
from rlm_tf.generation.mixture import MixtureStepwise
from rlm_tf.generation.sampling import row_seeds, uniform_draws
from rlm_tf.generation.stepwise import RecomputedModel
from rlm_tf.token_draws import draw_tokens

__all__ = [
    "MOST_CALIBRATION",
    "CalibrationFit",
    "MixtureStepwise",
    "RecomputedModel",
    "calibrate",
    "draw_tokens",
    "filter_logits",
    "fit_calibration",
    "generate",
    "generate_text",
    "keep_eta",
    "keep_nucleus",
    "keep_top_k",
    "keep_typical",
    "row_seeds",
    "scale_by_temperature",
    "uniform_draws",
]
