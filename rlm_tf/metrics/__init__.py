"""Keras metrics."""

from rlm_tf.metrics.perplexity import BitsPerCharacter, Perplexity

__all__ = ["BitsPerCharacter", "Perplexity"]
