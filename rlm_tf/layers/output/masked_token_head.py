"""From what an encoder gives of a masked token to the logits of a vocabulary."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from rlm_tf.checks import check_integer, check_option
from rlm_tf.layers.output.softmax_output import SoftmaxOutput
from rlm_tf.layers.transformer.transformer_block import ACTIVATIONS
from rlm_tf.seeds import Seeds


@keras.saving.register_keras_serializable("rlm_tf")
class MaskedTokenHead(keras.layers.Layer):
    """A map to the width of the embeddings, GELU, normalisation, tied softmax.

    Args:
        vocabulary_size: V.
        width: E, of the embeddings.
        activation: "gelu" or "gelu_tanh".
        epsilon: Of the normalisation.
        initializer_range: Standard deviation of the first weights.
        seed: Of initialisation.
        **kwargs: Of `keras.layers.Layer`.

    Raises:
        ValueError: If a size or name is out of range.
    """

    def __init__(
        self,
        vocabulary_size: int,
        width: int,
        *,
        activation: str = "gelu",
        epsilon: float = 1e-6,
        initializer_range: float = 0.02,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        name = type(self).__name__
        check_integer(name, "vocabulary_size", vocabulary_size, 1)
        check_integer(name, "width", width, 1)
        check_option(name, "activation", activation, ACTIVATIONS)
        self.vocabulary_size = vocabulary_size
        self.width = width
        self.activation = activation
        self.epsilon = epsilon
        self.initializer_range = initializer_range
        self.seed = seed
        policy = self.dtype_policy
        self.dense = keras.layers.Dense(
            width,
            kernel_initializer=keras.initializers.TruncatedNormal(
                stddev=initializer_range, seed=Seeds(seed).next()
            ),
            dtype=policy,
            name="dense",
        )
        self.norm = keras.layers.LayerNormalization(
            epsilon=epsilon, dtype=policy, name="norm"
        )
        self.output_layer = SoftmaxOutput(
            vocabulary_size, own_kernel=False, dtype=policy, name="output"
        )

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        self.dense.build(input_shape)
        shape = (*input_shape[:-1], self.width)
        self.norm.build(shape)
        self.output_layer.build(shape)
        self.built = True

    def call(self, features: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
        """Returns logits `[..., V]`.

        Args:
            features: `[..., D]`.
            kernel: The embeddings of tokens, `[V, E]`, in the compute dtype.
        """
        return self.output_layer(self.transform(features), tied_kernel=kernel)

    def transform(self, features: tf.Tensor) -> tf.Tensor:
        """Returns what the softmax reads, `[..., E]`, of features `[..., D]`."""
        hidden = keras.activations.gelu(
            self.dense(features), approximate=ACTIVATIONS[self.activation]
        )
        return self.norm(hidden)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "width": self.width,
            "activation": self.activation,
            "epsilon": self.epsilon,
            "initializer_range": self.initializer_range,
            "seed": self.seed,
        }
