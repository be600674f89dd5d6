"""Sampling text from language models, in a graph and with stateless seeds."""

from rlm_tf.generation.filters import (
    filter_logits,
    keep_nucleus,
    keep_top_k,
    scale_by_temperature,
)
from rlm_tf.generation.generate import generate
from rlm_tf.generation.sampling import draw_tokens, row_seeds, uniform_draws
from rlm_tf.generation.stepwise import RecomputedModel

__all__ = [
    "RecomputedModel",
    "draw_tokens",
    "filter_logits",
    "generate",
    "keep_nucleus",
    "keep_top_k",
    "row_seeds",
    "scale_by_temperature",
    "uniform_draws",
]
