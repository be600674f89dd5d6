"""A neural network over some of an example's features as a restricted model."""

from __future__ import annotations

from typing import Any

import keras
import numpy.typing as npt
import tensorflow as tf

from rlm_tf.nested_config import NestedConfig
from rlm_tf.restricted.features.feature_model import FeatureModel
from rlm_tf.typing import TensorLike


@keras.saving.register_keras_serializable("rlm_tf")
class NeuralFeatureModel(NestedConfig, FeatureModel):
    """`softmax(network(features))`, frozen except while `fit_pairs` runs.

    Args:
        network: A built Keras model from features `[N, L]` to logits `[N, V]`.

    Raises:
        ValueError: If the network has other inputs or outputs.
    """

    def __init__(self, network: keras.Model, **kwargs: Any):
        inputs = getattr(network, "input_shape", None)
        outputs = getattr(network, "output_shape", None)
        for shape in (inputs, outputs):
            if not isinstance(shape, tuple) or len(shape) != 2 or not shape[1]:
                raise ValueError(
                    "NeuralFeatureModel: `network` must map features [N L] to logits "
                    f"[N V], found shapes {inputs} and {outputs}."
                )
        assert inputs is not None and outputs is not None
        super().__init__(inputs[1], outputs[1], **kwargs)
        self.network = network
        self.network.trainable = False
        self.built = True

    def fit_pairs(
        self,
        features: npt.ArrayLike,
        outcomes: npt.ArrayLike,
        *,
        epochs: int = 50,
        batch_size: int = 32,
        learning_rate: float = 1e-3,
    ) -> NeuralFeatureModel:
        """Trains the network on pairs with Adam; returns itself.

        Args:
            features: `[N, L]`.
            outcomes: int `[N]`, in [0, V).
            epochs: Passes over the pairs.
            batch_size: Pairs of a step.
            learning_rate: Of Adam.
        """
        self.network.trainable = True
        self.network.compile(
            keras.optimizers.Adam(learning_rate),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        )
        try:
            self.network.fit(
                features, outcomes, epochs=epochs, batch_size=batch_size, verbose=0
            )
        finally:
            self.network.trainable = False
        return self

    def log_probs(self, short_features: TensorLike) -> tf.Tensor:
        """Returns float32 `[N, V]` for features `[N, L]`; see `FeatureModel`."""
        features = tf.cast(self._feature_matrix(short_features), tf.float32)
        logits = self.network(features, training=False)
        return tf.stop_gradient(tf.nn.log_softmax(tf.cast(logits, tf.float32)))

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        for name in ("num_features", "num_outcomes"):
            config.pop(name)
        config.update(network=keras.saving.serialize_keras_object(self.network))
        return config
