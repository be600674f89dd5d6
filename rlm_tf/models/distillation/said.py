"""What a teacher says of tokens, whole or lumped."""

from __future__ import annotations

import tensorflow as tf

from rlm_tf.numerics import multiply_no_nan_log
from rlm_tf.objectives.lumped_probs import LumpedProbs


class Said:
    """What a teacher says of N tokens.

    Args:
        given: Log-probabilities `[N, V]`, or lumped ones.
        weights: `[N]`, what each token counts.
    """

    def __init__(self, given: tf.Tensor | LumpedProbs, weights: tf.Tensor) -> None:
        self.given = given
        self.weights = weights

    def probs(self) -> tf.Tensor | LumpedProbs:
        """Returns what `joint_soft` takes."""
        is_lumped = isinstance(self.given, LumpedProbs)
        return self.given if is_lumped else tf.exp(self.given)

    def entropy(self) -> tf.Tensor:
        """Returns `-sum p ln p`, `[N]`, nats."""
        if isinstance(self.given, LumpedProbs):
            return self.given.entropy()
        own = multiply_no_nan_log(tf.exp(self.given), self.given)
        return -tf.reduce_sum(own, axis=-1)
