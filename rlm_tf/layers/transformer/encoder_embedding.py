"""What an encoder knows of a token before attention: itself, its place, its text."""

from __future__ import annotations

from typing import Any, Literal

import keras
import tensorflow as tf

from rlm_tf.checks import check_integer, check_option, check_range
from rlm_tf.layers.basic.replica_dropout import ReplicaDropout
from rlm_tf.layers.basic.token_embedding import TokenEmbedding
from rlm_tf.seeds import Seeds

DropoutPlace = Literal["output", "tokens"]
DROPOUT_PLACES: tuple[DropoutPlace, ...] = ("output", "tokens")


@keras.saving.register_keras_serializable("rlm_tf")
class EncoderEmbedding(keras.layers.Layer):
    """Sum of the embeddings of tokens, positions and segments, normalised.

    Several encoders may share one.

    Args:
        vocabulary_size: V.
        width: E.
        max_length: Positions that there are embeddings of; None: places are told
            otherwise.
        num_segments: Texts of a row that are told apart; 0: none are.
        dropout: Rate of dropout.
        dropout_place: Whether it is on the result ("output"), or on the embeddings of
            tokens alone, before positions and segments are added ("tokens").
        whole_tokens: Whether whole vectors are dropped (Dropout-2D, Tompson et al.
            2014), the others scaled by 1 / (1 - rate).
        epsilon: Of the normalisation.
        initializer_range: Standard deviation of the first embeddings.
        seed: Of initialisation and dropout.
        **kwargs: Of `keras.layers.Layer`.

    Raises:
        ValueError: If a size or rate is out of range.
    """

    def __init__(
        self,
        vocabulary_size: int,
        width: int,
        *,
        max_length: int | None = None,
        num_segments: int = 0,
        dropout: float = 0.1,
        dropout_place: DropoutPlace = "output",
        whole_tokens: bool = False,
        epsilon: float = 1e-6,
        initializer_range: float = 0.02,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        name = type(self).__name__
        check_integer(name, "vocabulary_size", vocabulary_size, 1)
        check_integer(name, "width", width, 1)
        check_integer(name, "num_segments", num_segments, 0)
        if max_length is not None:
            check_integer(name, "max_length", max_length, 1)
        if not 0 <= dropout < 1:
            raise ValueError(f"{name}: `dropout` must lie in [0, 1), found {dropout}.")
        check_range(
            name, 0.0, 1e6, epsilon=epsilon, initializer_range=initializer_range
        )
        self.vocabulary_size = vocabulary_size
        self.width = width
        self.max_length = max_length
        self.num_segments = num_segments
        check_option(name, "dropout_place", dropout_place, DROPOUT_PLACES)
        self.dropout = dropout
        self.dropout_place = dropout_place
        self.whole_tokens = whole_tokens
        self.epsilon = epsilon
        self.initializer_range = initializer_range
        self.seed = seed
        self._create_layers(Seeds(seed))

    def _create_layers(self, seeds: Seeds) -> None:
        policy = self.dtype_policy

        def table(rows: int, name: str) -> TokenEmbedding:
            layer = TokenEmbedding(
                rows,
                self.width,
                initializer=keras.initializers.TruncatedNormal(
                    stddev=self.initializer_range, seed=seeds.next()
                ),
                dtype=policy,
                name=name,
            )
            layer.build((None, None))
            return layer

        self.token_embedding = table(self.vocabulary_size, "token_embedding")
        if self.max_length is not None:
            self.position_embedding = table(self.max_length, "position_embedding")
        if self.num_segments:
            self.segment_embedding = table(self.num_segments, "segment_embedding")
        self.norm = keras.layers.LayerNormalization(
            epsilon=self.epsilon, dtype=policy, name="norm"
        )
        self.norm.build((None, None, self.width))
        self.output_dropout = ReplicaDropout(
            self.dropout,
            noise_shape=(None, None, 1) if self.whole_tokens else None,
            seed=seeds.next(),
            dtype=policy,
            name="output_dropout",
        )
        self.built = True

    def build(self, input_shape: Any = None) -> None:
        """Does nothing: the parts have their weights."""

    def call(
        self,
        tokens: tf.Tensor,
        segments: tf.Tensor | None = None,
        places: tf.Tensor | None = None,
        training: bool = False,
    ) -> tf.Tensor:
        """Embeds tokens.

        Args:
            tokens: int `[B, T]`.
            segments: int `[B, T]`, the text that a token is of; None: the first.
            places: int `[T]`, where tokens are; None: one behind another.
            training: Whether dropout acts.

        Returns:
            `[B, T, E]`.

        Raises:
            ValueError: If there are more tokens than positions.
        """
        total = self.embedded_tokens(tokens)
        on_tokens = self.dropout_place == "tokens"
        if on_tokens:
            total = self.output_dropout(total, training=training)
        if self.max_length is not None:
            length = tokens.shape[1]
            if places is None and length is not None and length > self.max_length:
                raise ValueError(
                    f"{type(self).__name__}: a row must have at most {self.max_length} "
                    f"tokens (`max_length`), found {length}."
                )
            if places is None:
                places = tf.range(tf.shape(tokens)[1])
            total += self.position_embedding(places)[tf.newaxis]
        if self.num_segments:
            if segments is None:
                segments = tf.zeros_like(tokens)
            total += self.segment_embedding(segments)
        found = self.norm(total)
        return found if on_tokens else self.output_dropout(found, training=training)

    def embedded_tokens(self, tokens: tf.Tensor) -> tf.Tensor:
        """Returns the embeddings of tokens alone, `[B, T, E]`."""
        return self.token_embedding(tokens)

    def matrix(self) -> tf.Tensor:
        """Returns the embeddings of tokens, `[V, E]`, in the compute dtype."""
        return self.token_embedding.matrix()

    # === Config ===

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "width": self.width,
            "max_length": self.max_length,
            "num_segments": self.num_segments,
            "dropout": self.dropout,
            "dropout_place": self.dropout_place,
            "whole_tokens": self.whole_tokens,
            "epsilon": self.epsilon,
            "initializer_range": self.initializer_range,
            "seed": self.seed,
        }


def check_embedding(name: str, own: dict[str, Any], given: EncoderEmbedding) -> None:
    """Raises ValueError unless embeddings are of the sizes that an encoder needs."""
    for option in ("vocabulary_size", "width", "max_length", "num_segments"):
        if getattr(given, option) != own[option]:
            raise ValueError(
                f"{name}: embeddings are shared by encoders of one `{option}`, found "
                f"{own[option]} and {getattr(given, option)}."
            )
