"""Restricted models whose short context is some of the features of an example."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from rlm_tf.checks import check_integer
from rlm_tf.typing import TensorLike


class FeatureModel(keras.layers.Layer):
    """A model of `P(outcome | some features)`; subclasses implement `log_probs`.

    Calling the layer is `log_probs`. No gradient flows out of a restricted model.

    Args:
        num_features: Features that it sees, L.
        num_outcomes: Outcomes, V.
    """

    def __init__(self, num_features: int, num_outcomes: int, **kwargs: Any):
        super().__init__(**{"trainable": False, **kwargs})
        check_integer(type(self).__name__, "num_features", num_features, 0)
        check_integer(type(self).__name__, "num_outcomes", num_outcomes, 1)
        self.num_features = num_features
        self.num_outcomes = num_outcomes

    def log_probs(self, short_features: TensorLike) -> tf.Tensor:
        """Returns natural log-probabilities of every outcome.

        Args:
            short_features: Floating point `[N, L]`.

        Returns:
            float32 `[N, V]`; minus infinity where the probability is zero.

        Raises:
            ValueError: If the shape is wrong.
        """
        raise NotImplementedError(f"{type(self).__name__} has no `log_probs`.")

    def probs(self, short_features: TensorLike) -> tf.Tensor:
        """Returns probabilities, float32 `[N, V]`; see `log_probs`."""
        return tf.exp(self.log_probs(short_features))

    def call(self, short_features: TensorLike) -> tf.Tensor:
        """Returns `log_probs(short_features)`."""
        return self.log_probs(short_features)

    def _feature_matrix(self, short_features: TensorLike) -> tf.Tensor:
        """Checks features and returns them as float64 `[N, L]`."""
        features = tf.convert_to_tensor(short_features, dtype_hint=tf.float64)
        if features.shape.rank != 2 or features.shape[1] != self.num_features:
            raise ValueError(
                f"{type(self).__name__}: `short_features` must have axes "
                f"[N {self.num_features}], found shape {features.shape}."
            )
        return tf.cast(features, tf.float64)

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        config.update(num_features=self.num_features, num_outcomes=self.num_outcomes)
        return config
