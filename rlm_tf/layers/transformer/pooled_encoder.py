"""One vector of a text, from an encoder that has one of each token."""

from __future__ import annotations

from typing import Any, Literal

import keras
import tensorflow as tf

from rlm_tf.checks import check_option
from rlm_tf.layers.transformer.transformer_encoder import TransformerEncoder
from rlm_tf.nested_config import NestedConfig
from rlm_tf.numerics import at_least_single

Pooling = Literal["cls", "mean"]
POOLINGS: tuple[Pooling, ...] = ("cls", "mean")


def pooled(
    features: tf.Tensor, tokens: Any, pooling: Pooling, padding_id: int
) -> tf.Tensor:
    """Returns one vector a row, `[B, D]`.

    Args:
        features: `[B, T, D]`.
        tokens: int `[B, T]`.
        pooling: "cls": the first token's; "mean": of all that is no padding.
        padding_id: Of what fills rows up.
    """
    if pooling == "cls":
        return features[:, 0]
    present = tf.not_equal(tf.convert_to_tensor(tokens), padding_id)
    wide = at_least_single(features)
    weights = tf.cast(present, wide.dtype)[..., tf.newaxis]
    total = tf.reduce_sum(weights * wide, axis=1)
    mean = tf.math.divide_no_nan(total, tf.reduce_sum(weights, axis=1))
    return tf.cast(mean, features.dtype)


@keras.saving.register_keras_serializable("rlm_tf")
class PooledEncoder(NestedConfig, keras.layers.Layer):
    """Gives a text the first token's vector of an encoder, or the mean of all.

    What `rlm_tf.models.TextClassifier` takes of an encoder that `rlm_tf pretrain` has
    trained, or that was published (`rlm_tf.models.read_bert`).

    Args:
        encoder: The encoder.
        pooling: "cls" or "mean", over all that is no padding.
        **kwargs: Of `keras.layers.Layer`.

    Raises:
        ValueError: If `encoder` is none, or `pooling` unknown.
    """

    def __init__(
        self, encoder: TransformerEncoder, *, pooling: Pooling = "mean", **kwargs: Any
    ) -> None:
        name = type(self).__name__
        check_option(name, "pooling", pooling, POOLINGS)
        if not isinstance(encoder, TransformerEncoder):
            raise ValueError(
                f"{name}: `encoder` must be an rlm_tf.layers.TransformerEncoder, found "
                f"{type(encoder).__name__}."
            )
        super().__init__(**{"dtype": encoder.dtype_policy, **kwargs})
        self.encoder = encoder
        self.pooling = pooling
        self.built = True

    def build(self, input_shape: Any = None) -> None:
        """Does nothing: the encoder has its weights."""

    def call(self, tokens: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Returns vectors `[B, width]`.

        Args:
            tokens: int `[B, T]`.
            training: Whether dropout acts.
        """
        features = self.encoder(tokens, training=training)
        return pooled(features, tokens, self.pooling, self.encoder.padding_id)

    def compute_output_shape(
        self, input_shape: tuple[int | None, ...]
    ) -> tuple[int | None, ...]:
        return (input_shape[0], self.encoder.width)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "encoder": keras.saving.serialize_keras_object(self.encoder),
            "pooling": self.pooling,
        }
