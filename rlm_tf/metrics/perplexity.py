"""Perplexity and bits per character: transforms of one mean of nats."""

from __future__ import annotations

import math
from typing import Any

import keras
import tensorflow as tf


def flat(values: tf.Tensor, weights: Any) -> tuple[tf.Tensor, Any]:
    """Returns values and weights as vectors.

    `keras.metrics.Mean` averages all axes but the first before it counts: windows of
    different lengths would weigh the same.
    """
    values = tf.reshape(values, [-1])
    return values, None if weights is None else tf.reshape(weights, [-1])


@keras.saving.register_keras_serializable("rlm_tf")
class Perplexity(keras.metrics.Mean):
    """`exp(sum of nats / number of tokens)` over everything seen since the last reset.

    Keeps a sum and a count, so batches of any size combine to the corpus perplexity.

    Args:
        name: Name of the metric.
        dtype: Dtype or policy of the accumulators.
    """

    _direction = "down"

    def __init__(self, name: str = "perplexity", dtype: Any = None) -> None:
        super().__init__(name=name, dtype=dtype)

    def update_state(self, nats: tf.Tensor, sample_weight: Any = None) -> None:
        """Adds negative log-likelihoods.

        Args:
            nats: Per token, any shape.
            sample_weight: Of that shape: how often each token counts (0 for padding).
        """
        super().update_state(*flat(nats, sample_weight))

    def result(self) -> tf.Tensor:
        return tf.exp(super().result())

    def get_config(self) -> dict[str, Any]:
        return {"name": self.name, "dtype": self.dtype}


@keras.saving.register_keras_serializable("rlm_tf")
class BitsPerCharacter(keras.metrics.Mean):
    """`sum of nats / number of characters / ln 2` since the last reset.

    With tokens other than characters this is bits per token.

    Args:
        name: Name of the metric.
        dtype: Dtype or policy of the accumulators.
    """

    _direction = "down"

    def __init__(self, name: str = "bits_per_character", dtype: Any = None) -> None:
        super().__init__(name=name, dtype=dtype)

    def update_state(self, nats: tf.Tensor, sample_weight: Any = None) -> None:
        """Adds negative log-likelihoods.

        Args:
            nats: Per character, any shape.
            sample_weight: Of that shape: how often each one counts (0 for padding).
        """
        super().update_state(*flat(nats, sample_weight))

    def result(self) -> tf.Tensor:
        return super().result() / math.log(2.0)

    def get_config(self) -> dict[str, Any]:
        return {"name": self.name, "dtype": self.dtype}
