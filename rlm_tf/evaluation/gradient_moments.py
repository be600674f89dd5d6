"""Mean and variance of gradient estimates, entry by entry."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from rlm_tf.typing import Gradient


class GradientMoments:
    """Mean and squared deviations from it of vectors, by Welford's method.

    Attributes:
        count: Vectors so far.
        mean: Their mean, `[P]`.
        squares: Sums of squared deviations, `[P]`.
    """

    def __init__(self) -> None:
        self.count = 0
        self.mean: Any = 0.0
        self.squares: Any = 0.0

    def add(self, vector: np.ndarray) -> None:
        """Counts a vector."""
        self.count += 1
        news = vector - self.mean
        self.mean = self.mean + news / self.count
        self.squares = self.squares + news * (vector - self.mean)

    @property
    def variance(self) -> np.ndarray:
        """Of one vector's entries, `[P]`; two vectors are needed."""
        return self.squares / (self.count - 1)

    def signal_and_noise(self) -> tuple[float, float]:
        """Returns the norms of the expected vector and of its deviations."""
        variance = float(np.sum(self.variance))
        square = float(self.mean @ self.mean) - variance / self.count
        return math.sqrt(max(square, 0.0)), math.sqrt(variance)


def joint_moments(parts: Sequence[GradientMoments]) -> GradientMoments:
    """Returns the moments of all vectors together."""
    whole = GradientMoments()
    for part in parts:
        count = whole.count + part.count
        news = part.mean - whole.mean
        share = part.count / count
        whole.mean = whole.mean + news * share
        between = np.square(news) * whole.count if whole.count else 0.0
        whole.squares = whole.squares + part.squares + between * share
        whole.count = count
    return whole


def joined(gradients: Sequence[tuple[tf.Variable, Gradient]]) -> tf.Tensor:
    """Returns gradients as one vector; None is zero."""
    parts = [
        tf.zeros(tf.size(variable))
        if gradient is None
        else tf.reshape(tf.cast(tf.convert_to_tensor(gradient), tf.float32), [-1])
        for variable, gradient in gradients
    ]
    return tf.concat(parts, axis=0)
