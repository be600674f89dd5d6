"""A Keras model that owns a restricted model, as the ones that match it do."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf


@keras.saving.register_keras_serializable("rlm_tf_tests")
class Wrapper(keras.Model):
    """Adds a trainable scale to the log-probabilities of a restricted model."""

    def __init__(self, restricted_model: keras.layers.Layer, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.restricted_model = restricted_model
        self.scale = self.add_weight(name="scale", shape=(), initializer="ones")

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        return self.scale * self.restricted_model.probs(inputs)

    def build_from_config(self, config: dict[str, Any]) -> None:
        """The weight exists from the start."""

    def get_config(self) -> dict[str, Any]:
        layer = keras.saving.serialize_keras_object(self.restricted_model)
        return {**super().get_config(), "restricted_model": layer}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Wrapper:
        config = dict(config)
        layer = keras.saving.deserialize_keras_object(config.pop("restricted_model"))
        return cls(layer, **config)


def round_trip(model: keras.Model, path: Any) -> keras.Model:
    """Saves as `.keras` and loads in safe mode."""
    model.save(path)
    return keras.saving.load_model(path, safe_mode=True)
