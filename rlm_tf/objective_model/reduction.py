"""Weighted means over batch and replicas."""

from __future__ import annotations

import tensorflow as tf

from rlm_tf.numerics import at_least_single
from rlm_tf.objective_model.term import Term
from rlm_tf.replicas import all_reduce


class Reduction:
    """The global weighted mean of one term, split over replicas."""

    def __init__(self, term: Term):
        self.term = term
        weights = term.weights
        if weights is None:
            weights = tf.ones_like(term.loss)
        self.weights = at_least_single(weights)
        self.total = all_reduce(tf.reduce_sum(self.weights))
        if term.loss is not None:
            self.set_loss(term.loss)

    def set_loss(self, loss: tf.Tensor) -> None:
        loss = at_least_single(loss)
        if not loss.shape.is_compatible_with(self.weights.shape):
            raise ValueError(
                f"Term `{self.term.name}`: `weights` must have the shape of `loss`, "
                f"{loss.shape}, found {self.weights.shape}."
            )
        self.weights = tf.cast(self.weights, loss.dtype)
        self.total = tf.cast(self.total, loss.dtype)
        # A position that does not count may hold anything, infinity included.
        self.loss = tf.where(self.weights > 0, loss, tf.zeros_like(loss))

    def value(self) -> tf.Tensor:
        """This replica's share of the weighted mean."""
        value = tf.reduce_sum(self.loss * self.weights)
        return tf.cast(tf.math.divide_no_nan(value, self.total), tf.float32)

    def weighted_value(self) -> tf.Tensor:
        """The share times the coefficient."""
        return tf.cast(self.term.coefficient, tf.float32) * self.value()

    def scale(self) -> tf.Tensor:
        """What each entry of the loss is multiplied by in the weighted mean."""
        return tf.math.divide_no_nan(self.weights, self.total)
