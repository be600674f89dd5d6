"""Vectors of documents by convolutions over their words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from rlm_tf.checks import check_integer, check_range
from rlm_tf.labelling.word_list import PADDING
from rlm_tf.layers.text.word_vectors import word_vectors
from rlm_tf.seeds import Seeds


@keras.saving.register_keras_serializable("rlm_tf")
class ConvolutionalText(keras.layers.Layer):
    """Convolutions of several sizes, the largest value of each (Kim 2014).

    Windows reach beyond the ends of a document by all but one word, so that documents
    shorter than a window have a vector; what is padding has no part.

    Args:
        vocabulary_size: V.
        width: Of the vectors of words.
        filters: Of each size; D is as many times the number of sizes.
        sizes: Words of windows.
        dropout: Rate of the vectors of words.
        seed: Of first weights and dropout.
        **kwargs: Of `keras.layers.Layer`.

    Raises:
        ValueError: If a number is out of range, or there is no size.
    """

    def __init__(
        self,
        vocabulary_size: int,
        width: int,
        filters: int,
        *,
        sizes: Sequence[int] = (2, 3, 4),
        dropout: float = 0.0,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        name = type(self).__name__
        for argument, value in (
            ("vocabulary_size", vocabulary_size),
            ("width", width),
            ("filters", filters),
        ):
            check_integer(name, argument, value, 1)
        if not sizes:
            raise ValueError(f"{name}: `sizes` must name at least one.")
        for size in sizes:
            check_integer(name, "sizes", size, 1)
        check_range(name, 0.0, 0.999, dropout=dropout)
        self.vocabulary_size = vocabulary_size
        self.width = width
        self.filters = filters
        self.sizes = tuple(sizes)
        self.dropout = dropout
        self.seed = seed
        seeds, policy = Seeds(seed, self), self.dtype_policy
        self.embedding, self.dropout_layer = word_vectors(
            vocabulary_size, width, dropout, seeds, policy
        )
        self.convolutions = [
            keras.layers.Conv1D(
                filters,
                size,
                kernel_initializer=keras.initializers.GlorotUniform(seeds.next()),
                dtype=policy,
                name=f"size{size}",
            )
            for size in self.sizes
        ]

    def build(self, input_shape: Any = None) -> None:
        self.embedding.build((None, None))
        for convolution in self.convolutions:
            convolution.build((None, None, self.width))
        self.built = True

    def call(self, tokens: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Returns vectors `[B, D]`.

        Args:
            tokens: int `[B, T]`.
            training: Whether dropout acts.
        """
        present = tokens != PADDING
        vectors = self.dropout_layer(self.embedding(tokens), training=training)
        vectors *= tf.cast(present, vectors.dtype)[..., tf.newaxis]
        found = []
        for size, convolution in zip(self.sizes, self.convolutions, strict=True):
            beyond = [[0, 0], [size - 1, size - 1]]
            values = tf.nn.relu(convolution(tf.pad(vectors, [*beyond, [0, 0]])))
            # A window counts if it has a word; at least 0, as after `relu`.
            words = tf.cast(tf.pad(present, beyond), tf.int32)
            windows = tf.signal.frame(words, size, 1, axis=1)
            counts = tf.reduce_max(windows, axis=2)
            values *= tf.cast(counts, values.dtype)[..., tf.newaxis]
            found.append(tf.reduce_max(values, axis=1))
        return tf.concat(found, axis=1)

    def compute_output_shape(
        self, input_shape: tuple[int | None, ...]
    ) -> tuple[int | None, ...]:
        return (input_shape[0], self.filters * len(self.sizes))

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "width": self.width,
            "filters": self.filters,
            "sizes": list(self.sizes),
            "dropout": self.dropout,
            "seed": self.seed,
        }
