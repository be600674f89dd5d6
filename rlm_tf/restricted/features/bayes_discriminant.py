"""The restricted Bayes predictor of a linear discriminant: P(y | some features)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from rlm_tf.restricted.features.feature_model import FeatureModel
from rlm_tf.typing import TensorLike

_MOST_UNSEEN = 16
_ROUNDING = 1e-9


@keras.saving.register_keras_serializable("rlm_tf")
class BayesDiscriminant(FeatureModel):
    """Exact `P(y = 1 | x_short)` where the other features are uniform on a cube.

    With `g(x) = a . x + d`, the features that are not seen contribute a sum of
    independent uniform variables. Its distribution function is a piecewise polynomial:
    with `w_i = |a_i| (high - low)` of the m unseen features whose coefficient is not
    zero, and u the value above the sum's smallest,

        F(u) = 1 / (m! prod w) sum_{e in {0,1}^m} (-1)^|e| max(u - e . w, 0)^m

    and `P(y = 1 | x_short) = 1 - F(-(a . x_short) - d - smallest)`. Unseen features of
    coefficient zero do not matter. If no other is unseen, the label is certain. Widths
    so small that the alternating sum would lose more than 1e-9 to rounding are left
    out, and their features replaced by their means.

    Source: section 1.1 of Muneeb and Ohannessian, arXiv 2402.12513; the formula is the
    distribution function of a sum of uniform variables (Bradley and Gupta, 2002).

    Args:
        coefficients: Of all features, in order.
        offset: d.
        low: Lower bound of every feature.
        high: Upper bound.
        short_features: Which features are seen, in the order in which `log_probs` gets
            them.

    Raises:
        ValueError: If the task is none, a feature does not exist, or more than 16
            features are unseen (the sum has 2^m terms).
    """

    def __init__(
        self,
        coefficients: Sequence[float] = (1.0, 1.0, 1.0),
        offset: float = 0.0,
        low: float = -1.0,
        high: float = 1.0,
        short_features: Sequence[int] = (0,),
        **kwargs: Any,
    ):
        super().__init__(len(short_features), 2, **kwargs)
        self.coefficients = [float(value) for value in coefficients]
        self.offset = float(offset)
        self.low = float(low)
        self.high = float(high)
        self.short_features = [int(index) for index in short_features]
        numbers = [*self.coefficients, self.offset, self.low, self.high]
        if not np.all(np.isfinite(numbers)) or not self.low < self.high:
            raise ValueError(
                "BayesDiscriminant: numbers must be finite and `low` below `high`; "
                f"found coefficients {self.coefficients}, offset {self.offset}, low "
                f"{self.low}, high {self.high}."
            )
        count = len(self.coefficients)
        distinct = len(set(self.short_features)) == len(self.short_features)
        if not distinct or any(not 0 <= i < count for i in self.short_features):
            raise ValueError(
                f"BayesDiscriminant: `short_features` must be distinct numbers in "
                f"[0, {count}), found {self.short_features}."
            )
        unseen = np.delete(self.coefficients, self.short_features)
        if np.count_nonzero(unseen) > _MOST_UNSEEN:
            raise ValueError(
                f"BayesDiscriminant: at most {_MOST_UNSEEN} features whose coefficient "
                f"is not zero may be unseen, found {np.count_nonzero(unseen)}."
            )

    def positive_probs(self, short_features: TensorLike) -> tf.Tensor:
        """Returns `P(y = 1 | short)`, float64 `[N]`, for features `[N, L]`."""
        features = self._feature_matrix(short_features)
        # The label does not depend on the scale.
        scale = np.max(np.abs(self.coefficients), initial=0.0) or 1.0
        coefficients = np.array(self.coefficients) / scale
        seen = tf.constant(coefficients[self.short_features], tf.float64)
        known = tf.linalg.matvec(features, seen) + self.offset / scale
        unseen = np.delete(coefficients, self.short_features)
        wide = _wide_enough(np.abs(unseen) * (self.high - self.low))
        mean = unseen[~wide].sum() * (self.low + self.high) / 2
        unseen = unseen[wide]
        smallest = np.minimum(unseen * self.low, unseen * self.high).sum() + mean
        widths = np.abs(unseen) * (self.high - self.low)
        return 1.0 - _uniform_sum_cdf(-known - smallest, widths)

    def log_probs(self, short_features: TensorLike) -> tf.Tensor:
        """Returns float32 `[N, 2]` for features `[N, L]`; see `FeatureModel`."""
        positive = self.positive_probs(short_features)
        probs = tf.stack([1.0 - positive, positive], axis=-1)
        return tf.cast(tf.math.log(probs), tf.float32)

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        for name in ("num_features", "num_outcomes"):
            config.pop(name)
        config.update(
            coefficients=self.coefficients,
            offset=self.offset,
            low=self.low,
            high=self.high,
            short_features=self.short_features,
        )
        return config


def _wide_enough(widths: np.ndarray) -> np.ndarray:
    """Returns which widths to keep: the largest, as long as rounding stays small."""
    order = np.argsort(-widths, kind="stable")
    relative = widths[order] / max(widths.max(initial=0.0), np.finfo(np.float64).tiny)
    lost = np.finfo(np.float64).eps / np.maximum(np.cumprod(relative), 1e-300)
    keep = np.zeros(len(widths), bool)
    keep[order] = (lost < _ROUNDING) & (relative > 0)
    return keep


def _uniform_sum_cdf(values: tf.Tensor, widths: np.ndarray) -> tf.Tensor:
    """Distribution function of `sum_i U[0, w_i]` with positive widths."""
    if not len(widths):
        # Where g(x) = 0 the label is 0.
        return tf.cast(values >= 0, values.dtype)
    count = len(widths)
    total = tf.zeros_like(values)
    for subset in itertools.product((0, 1), repeat=count):
        reached = tf.maximum(values - np.dot(subset, widths), 0.0) ** count
        total += (-1.0) ** sum(subset) * reached
    total /= math.factorial(count) * np.prod(widths)
    # Beyond the largest value the alternating sum is one up to rounding.
    total = tf.where(values >= widths.sum(), tf.ones_like(total), total)
    return tf.clip_by_value(total, 0.0, 1.0)
