"""Sums of word vectors by tf-idf: a linear model of words when units are classes."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from rlm_tf.checks import check_integer
from rlm_tf.labelling.document_counts import document_counts
from rlm_tf.labelling.word_list import PADDING, UNKNOWN


@keras.saving.register_keras_serializable("rlm_tf")
class TfidfBag(keras.layers.Layer):
    """Sums the vectors of a document's words, each weighed by tf-idf.

        output = sum_w x_w E_w,    x = u / |u|,    u_w = tf_w idf_w

    with the sum over distinct words, tf the count of w (1 + ln of it with `sublinear`)
    and `idf = 1 + ln((1 + N) / (1 + N_w))` of N documents, as in scikit-learn's
    `TfidfVectorizer`; no row of V numbers is ever made. With as many units as classes
    this is a linear classifier of tf-idf but for its bias.

    Args:
        vocabulary_size: V, ids of a `WordList`; padding and unknown words count 0.
        units: Of the output.
        sublinear: Whether counts weigh by their logarithm.
        seed: Of the first vectors, which are close to 0.
        **kwargs: Of `keras.layers.Layer`.

    Raises:
        ValueError: If a number is out of range.
    """

    def __init__(
        self,
        vocabulary_size: int,
        units: int,
        *,
        sublinear: bool = True,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        name = type(self).__name__
        check_integer(name, "vocabulary_size", vocabulary_size, 3)
        check_integer(name, "units", units, 1)
        check_integer(name, "seed", seed, 0)
        self.vocabulary_size = vocabulary_size
        self.units = units
        self.sublinear = sublinear
        self.seed = seed

    def build(self, input_shape: Any = None) -> None:
        self.kernel = self.add_weight(
            name="kernel",
            shape=[self.vocabulary_size, self.units],
            initializer=keras.initializers.RandomNormal(0.0, 1e-3, seed=self.seed),
        )
        self.idf = self.add_weight(
            name="idf",
            shape=[self.vocabulary_size],
            initializer="ones",
            trainable=False,
        )
        self.built = True

    def adapt(self, tokens: npt.ArrayLike) -> None:
        """Learns how rare words are.

        Args:
            tokens: int `[N, T]`, rows of ids: of training documents alone.
        """
        if not self.built:
            self.build()
        self.idf.assign(inverse_document_frequencies(tokens, self.vocabulary_size))

    def call(self, tokens: tf.Tensor) -> tf.Tensor:
        """Returns sums `[B, units]`.

        Args:
            tokens: int `[B, T]`.
        """
        rows, length = tf.unstack(tf.shape(tokens))
        ids = tf.cast(tf.reshape(tokens, [-1]), tf.int64)
        owner = tf.repeat(tf.range(rows, dtype=tf.int64), length)
        keys, _, counts = tf.unique_with_counts(owner * self.vocabulary_size + ids)
        words, owner = keys % self.vocabulary_size, keys // self.vocabulary_size
        dtype = self.compute_dtype
        frequency = tf.cast(counts, dtype)
        if self.sublinear:
            frequency = 1 + tf.math.log(frequency)
        counts_for = tf.cast((words != PADDING) & (words != UNKNOWN), dtype)
        values = frequency * tf.cast(tf.gather(self.idf, words), dtype) * counts_for
        squares = tf.math.unsorted_segment_sum(values**2, owner, rows)
        values *= tf.gather(tf.math.divide_no_nan(1.0, tf.sqrt(squares)), owner)
        vectors = tf.cast(tf.gather(self.kernel, words), dtype)
        found = tf.math.unsorted_segment_sum(
            values[:, tf.newaxis] * vectors, owner, rows
        )
        return tf.ensure_shape(found, [tokens.shape[0], self.units])

    def compute_output_shape(
        self, input_shape: tuple[int | None, ...]
    ) -> tuple[int | None, ...]:
        return (input_shape[0], self.units)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "units": self.units,
            "sublinear": self.sublinear,
            "seed": self.seed,
        }


def inverse_document_frequencies(tokens: npt.ArrayLike, size: int) -> np.ndarray:
    """Returns idf of words, float64 `[size]`; 0 of padding and unknown words.

    Args:
        tokens: int `[N, T]`, rows of ids.
        size: V.
    """
    rows = np.asarray(tokens)
    documents = document_counts(rows, size)[0]
    idf = 1 + np.log((1 + len(rows)) / (1 + documents))
    idf[[PADDING, UNKNOWN]] = 0.0
    return idf
