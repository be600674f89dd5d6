"""The embedding of tokens."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf


@keras.saving.register_keras_serializable("rlm_tf")
class TokenEmbedding(keras.layers.Layer):
    """Looks up one row of a matrix for each token.

    Unlike `keras.layers.Embedding`, its gradient is a dense matrix in which the rows of
    repeated tokens are added up. Slices with repeated rows have another norm, so that
    clipping would depend on how often a word repeats, and cannot be merged in XLA.

    Args:
        vocabulary_size: V.
        width: D.
        initializer: For the matrix `[V, D]`.
        **kwargs: Of `keras.layers.Layer`.
    """

    def __init__(
        self,
        vocabulary_size: int,
        width: int,
        *,
        initializer: Any = "uniform",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size
        self.width = width
        self.initializer = keras.initializers.get(initializer)

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        self.embeddings = self.add_weight(
            name="embeddings",
            shape=(self.vocabulary_size, self.width),
            initializer=self.initializer,
        )
        self.built = True

    def matrix(self) -> tf.Tensor:
        """Returns the matrix `[V, D]` in the compute dtype."""
        return tf.cast(tf.convert_to_tensor(self.embeddings), self.compute_dtype)

    def call(self, tokens: tf.Tensor) -> tf.Tensor:
        """Maps int tokens `[...]` to rows `[..., D]` in the compute dtype."""

        @tf.custom_gradient
        def look_up(matrix: tf.Tensor) -> Any:
            def gradient(d_rows: tf.Tensor) -> tf.Tensor:
                return tf.math.unsorted_segment_sum(
                    d_rows, tokens, self.vocabulary_size
                )

            return tf.gather(matrix, tokens), gradient

        # The variable itself is read: in half precision only the rows need a cast.
        matrix = tf.convert_to_tensor(self.embeddings.value)
        return tf.cast(look_up(matrix), self.compute_dtype)

    # === Config ===

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "width": self.width,
            "initializer": keras.initializers.serialize(self.initializer),
        }
