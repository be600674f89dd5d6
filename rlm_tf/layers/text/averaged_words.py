"""Means of the vectors of words and of pairs of words."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from rlm_tf.checks import check_integer, check_range
from rlm_tf.labelling.word_list import PADDING, UNKNOWN
from rlm_tf.layers.basic.replica_dropout import ReplicaDropout
from rlm_tf.numerics import at_least_single
from rlm_tf.seeds import Seeds

# An odd number of 31 bits, so that pairs go to buckets as if drawn.
_FACTOR = 1_640_531_527
_MODULUS = (1 << 31) - 1


@keras.saving.register_keras_serializable("rlm_tf")
class AveragedWords(keras.layers.Layer):
    """Averages vectors of words and of pairs of neighbours (Joulin et al. 2017).

    Pairs have no ids of their own; each goes to one of `buckets` vectors by a hash.
    Unknown words have no vector, nor have pairs with one. One table holds all, so that
    `optimizers.RowAdam` moves only what a batch has read.

    Args:
        vocabulary_size: V, ids of a `WordList`.
        width: D.
        buckets: Vectors of pairs; 0: words alone.
        dropout: Rate of the vectors, of words and pairs, before they are averaged.
        whole_words: Whether it is of whole vectors (Dropout-2D, Tompson et al. 2014).
        seed: Of the first vectors, and of dropout.
        **kwargs: Of `keras.layers.Layer`.

    Raises:
        ValueError: If a number is out of range.
    """

    def __init__(
        self,
        vocabulary_size: int,
        width: int,
        *,
        buckets: int = 65_536,
        dropout: float = 0.0,
        whole_words: bool = False,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        name = type(self).__name__
        check_integer(name, "vocabulary_size", vocabulary_size, 3)
        check_integer(name, "width", width, 1)
        check_integer(name, "buckets", buckets, 0)
        check_integer(name, "seed", seed, 0)
        self.vocabulary_size = vocabulary_size
        self.width = width
        check_range(name, 0.0, 0.999, dropout=dropout)
        self.buckets = buckets
        self.dropout = dropout
        self.whole_words = whole_words
        self.dropout_layer = ReplicaDropout(
            dropout,
            noise_shape=(None, None, 1) if whole_words else None,
            seed=Seeds(seed, self).next(),
            # As the vectors are averaged in.
            dtype=self.dtype_policy,
            name="dropout",
        )
        self.seed = seed

    def build(self, input_shape: Any = None) -> None:
        self.table = self.add_weight(
            name="table",
            shape=[self.vocabulary_size + self.buckets, self.width],
            initializer=keras.initializers.RandomUniform(-0.05, 0.05, seed=self.seed),
        )
        self.built = True

    def call(self, tokens: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Returns means `[B, D]`; zeros of a document without a known word.

        Args:
            tokens: int `[B, T]`.
            training: Whether dropout acts.
        """
        tokens = tf.cast(tokens, tf.int32)
        known = (tokens != PADDING) & (tokens != UNKNOWN)
        ids, counts = tokens, known
        if self.buckets:
            pairs = self.pairs(tokens)
            both = known[:, 1:] & known[:, :-1]
            ids = tf.concat([tokens, pairs], axis=1)
            counts = tf.concat([known, both], axis=1)
        # Looked up as they are, so that gradients are of rows.
        vectors = tf.gather(self.table, ids)
        vectors = at_least_single(self.dropout_layer(vectors, training=training))
        weights = tf.cast(counts, vectors.dtype)[..., tf.newaxis]
        total = tf.reduce_sum(weights * vectors, axis=1)
        number = tf.reduce_sum(weights, axis=1)
        return tf.cast(tf.math.divide_no_nan(total, number), self.compute_dtype)

    def pairs(self, tokens: tf.Tensor) -> tf.Tensor:
        """Returns the places of neighbouring pairs in the table, int32 `[B, T - 1]`."""
        wide = tf.cast(tokens, tf.int64)
        mixed = (wide[:, :-1] * _FACTOR % _MODULUS + wide[:, 1:]) * _FACTOR % _MODULUS
        bucket = mixed % self.buckets
        return tf.cast(bucket + self.vocabulary_size, tf.int32)

    def compute_output_shape(
        self, input_shape: tuple[int | None, ...]
    ) -> tuple[int | None, ...]:
        return (input_shape[0], self.width)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "width": self.width,
            "buckets": self.buckets,
            "dropout": self.dropout,
            "whole_words": self.whole_words,
            "seed": self.seed,
        }
