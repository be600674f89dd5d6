"""Keras metrics."""

from rlm_tf.metrics.perplexity import BitsPerCharacter, Perplexity
from rlm_tf.metrics.quantiles import Quantiles

__all__ = ["BitsPerCharacter", "Perplexity", "Quantiles"]
