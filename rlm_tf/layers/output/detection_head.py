"""From what an encoder gives of a token to whether it was replaced."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from rlm_tf.layers.transformer.transformer_block import ACTIVATIONS
from rlm_tf.seeds import Seeds


@keras.saving.register_keras_serializable("rlm_tf")
class DetectionHead(keras.layers.Layer):
    """A map of the width of the encoder, GELU, one logit.

    Args:
        width: D.
        activation: "gelu" or "gelu_tanh".
        initializer_range: Standard deviation of the first weights.
        seed: Of initialisation.
        **kwargs: Of `keras.layers.Layer`.
    """

    def __init__(
        self,
        width: int,
        *,
        activation: str = "gelu",
        initializer_range: float = 0.02,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.width = width
        self.activation = activation
        self.initializer_range = initializer_range
        self.seed = seed
        seeds = Seeds(seed)
        self.dense, self.logit = (
            keras.layers.Dense(
                units,
                kernel_initializer=keras.initializers.TruncatedNormal(
                    stddev=initializer_range, seed=seeds.next()
                ),
                dtype=self.dtype_policy,
                name=name,
            )
            for units, name in ((width, "dense"), (1, "logit"))
        )

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        self.dense.build(input_shape)
        self.logit.build((*input_shape[:-1], self.width))
        self.built = True

    def call(self, features: tf.Tensor) -> tf.Tensor:
        """Returns logits `[...]` of features `[..., D]`."""
        hidden = keras.activations.gelu(
            self.dense(features), approximate=ACTIVATIONS[self.activation]
        )
        return tf.squeeze(self.logit(hidden), axis=-1)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "width": self.width,
            "activation": self.activation,
            "initializer_range": self.initializer_range,
            "seed": self.seed,
        }
