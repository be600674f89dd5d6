"""Logistic regression with induced model matching."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from rlm_tf.checks import check_integer
from rlm_tf.models.imm.neighbor_matching import NeighborMatching
from rlm_tf.objective_model.term import Coefficient
from rlm_tf.restricted import FeatureModel
from rlm_tf.typing import TensorLike


@keras.saving.register_keras_serializable("rlm_tf")
class LogisticIMM(NeighborMatching):
    """`Q(y = 1 | x) = sigmoid(w . x + b)`, matched to a model of few features.

    Objective, neighbours and `fit()` are those of `NeighborMatching`. The induced
    models cost little here: the logit for a short context of one example and the
    extended context of another is a sum of two numbers.

    Full-batch training with `keras.optimizers.SGD(1.0)` is the published recipe; to
    train many data sets at once use `fit_logistic_runs`.

    Source: section 1.1 and appendix D.1 of Muneeb and Ohannessian, arXiv 2402.12513.

    Args:
        restricted_model: P_hat(y | short features), two outcomes; None: plain training.
        num_features: D.
        short_features: Indices of the features that P_hat takes.
        ratio: r = lambda / (1 + lambda), in [0, 1], or a schedule over steps;
            `published_ratio(n)` is the paper's rule.
        inverse_bandwidth: alpha of the kernel.
        **kwargs: See `ObjectiveModel`.

    Raises:
        ValueError: If an argument is out of range.
    """

    def __init__(
        self,
        restricted_model: FeatureModel | None = None,
        num_features: int = 3,
        short_features: Sequence[int] = (0,),
        *,
        ratio: Coefficient = 0.7,
        inverse_bandwidth: float = 1.0,
        **kwargs: Any,
    ):
        super().__init__(
            restricted_model,
            short_features,
            ratio=ratio,
            inverse_bandwidth=inverse_bandwidth,
            **kwargs,
        )
        check_integer("LogisticIMM", "num_features", num_features, 1)
        if max(self.short_features) >= num_features:
            raise ValueError(
                f"LogisticIMM: `short_features` must be below `num_features`, "
                f"{num_features}; found {self.short_features}."
            )
        outcomes = getattr(restricted_model, "num_outcomes", 2)
        if outcomes != 2:
            raise ValueError(
                "LogisticIMM: `restricted_model` must have two outcomes, found "
                f"{outcomes}."
            )
        self.num_features = num_features
        self.kernel = self.add_weight(
            shape=(num_features,), initializer="zeros", name="kernel"
        )
        self.bias = self.add_weight(shape=(), initializer="zeros", name="bias")
        self.built = True

    @property
    def example_shape(self) -> tuple[int, ...]:
        """The shape of one example."""
        return (self.num_features,)

    def call(self, x: TensorLike) -> tf.Tensor:
        """Returns `P(y = 1 | x)`, `[B]`, for features `[B, D]`."""
        return tf.sigmoid(self.logits(x))

    def logits(self, x: TensorLike) -> tf.Tensor:
        """Returns logits of y = 1, `[B]`, for features `[B, D]`."""
        x = tf.cast(x, self.kernel.dtype)
        return tf.linalg.matvec(x, tf.convert_to_tensor(self.kernel)) + self.bias

    def class_log_probs(self, x: tf.Tensor, training: bool) -> tf.Tensor:
        return binary_log_probs(self.logits(x))

    def sample_log_probs(
        self, x: tf.Tensor, neighbors: tf.Tensor, training: bool
    ) -> tf.Tensor:
        short = tf.gather(tf.convert_to_tensor(self.kernel), self.short_features)
        x, neighbors = tf.cast(x, short.dtype), tf.cast(neighbors, short.dtype)
        own = tf.linalg.matvec(self._short(x), short)
        rest = self.logits(neighbors) - tf.linalg.matvec(self._short(neighbors), short)
        return binary_log_probs(rest[:, tf.newaxis] + own)

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        config.update(num_features=self.num_features)
        return config


def binary_log_probs(logits: tf.Tensor) -> tf.Tensor:
    """Returns log-probabilities of both labels, `[..., 2]`, for logits of label 1."""
    return tf.stack(
        [tf.math.log_sigmoid(-logits), tf.math.log_sigmoid(logits)], axis=-1
    )


def published_ratio(num_examples: int) -> float:
    """Returns the paper's rule `lambda / (1 + lambda) = 0.818 - 0.0111 n`, in [0, 1].

    A fit to the best ratios at n = 2, 10 and 20 (appendix D.1), meant for n <= 50.
    """
    check_integer("published_ratio", "num_examples", num_examples, 1)
    return min(max(0.818 - 0.0111 * num_examples, 0.0), 1.0)
