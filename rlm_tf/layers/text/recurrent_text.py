"""A recurrent cell over a document in both directions, the largest values."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from rlm_tf.checks import check_integer, check_range
from rlm_tf.labelling.word_list import PADDING
from rlm_tf.layers.recurrent.cell_copies import copy_cell
from rlm_tf.layers.recurrent.recurrent import Recurrent
from rlm_tf.layers.recurrent.recurrent_cell import RecurrentCell
from rlm_tf.layers.text.word_vectors import word_vectors
from rlm_tf.nested_config import NestedConfig
from rlm_tf.seeds import Seeds


@keras.saving.register_keras_serializable("rlm_tf")
class RecurrentText(NestedConfig, keras.layers.Layer):
    """Runs a cell over words forwards and backwards; the largest of each output.

    What is padded, behind the words, has no part: the loop that comes from the end
    begins at the last word. A document without a word has zeros.

    Args:
        vocabulary_size: V.
        width: Of the vectors of words.
        cell: `LSTMCell`, `MogrifierLSTMCell` or any other `RecurrentCell`; each
            direction has a copy. D is twice its output's width.
        dropout: Rate of the vectors of words.
        jit_loop: Whether XLA compiles the loop, see `Recurrent`.
        seed: Of first weights and dropout.
        **kwargs: Of `keras.layers.Layer`.

    Raises:
        ValueError: If a number is out of range, or `cell` is no `RecurrentCell`.
    """

    def __init__(
        self,
        vocabulary_size: int,
        width: int,
        cell: RecurrentCell,
        *,
        dropout: float = 0.0,
        jit_loop: bool | str = "auto",
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        name = type(self).__name__
        check_integer(name, "vocabulary_size", vocabulary_size, 1)
        check_integer(name, "width", width, 1)
        check_range(name, 0.0, 0.999, dropout=dropout)
        if not isinstance(cell, RecurrentCell):
            raise ValueError(
                f"{name}: `cell` must be an rlm_tf.layers.RecurrentCell, found "
                f"{type(cell).__name__}."
            )
        self.vocabulary_size = vocabulary_size
        self.width = width
        # Keras would count it among the layers; it is copied, and has no weights.
        self._prototype = lambda: cell
        self.dropout = dropout
        self.jit_loop = jit_loop
        self.seed = seed
        seeds, policy = Seeds(seed, self), self.dtype_policy
        self.embedding, self.dropout_layer = word_vectors(
            vocabulary_size, width, dropout, seeds, policy
        )
        self.forwards, self.backwards = (
            Recurrent(
                copy_cell(cell, seeds, policy),
                jit_loop=jit_loop,
                dtype=policy,
                name=name_of_it,
            )
            for name_of_it in ("forwards", "backwards")
        )

    @property
    def cell(self) -> RecurrentCell:
        """The cell that was given."""
        return self._prototype()

    def build(self, input_shape: Any = None) -> None:
        self.embedding.build((None, None))
        for layer in (self.forwards, self.backwards):
            layer.build((None, None, self.width))
        self.built = True

    def call(self, tokens: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Returns vectors `[B, D]`.

        Args:
            tokens: int `[B, T]`, padded behind.
            training: Whether dropout acts.
        """
        present = tokens != PADDING
        lengths = tf.reduce_sum(tf.cast(present, tf.int32), axis=1)
        vectors = self.dropout_layer(self.embedding(tokens), training=training)
        turned = tf.reverse_sequence(vectors, lengths, seq_axis=1)
        found = []
        for layer, own in ((self.forwards, vectors), (self.backwards, turned)):
            outputs = layer(own, training=training)[0]
            # Both have their outputs where there are words, in whatever order.
            low = tf.constant(outputs.dtype.min, outputs.dtype)
            largest = tf.reduce_max(
                tf.where(present[..., tf.newaxis], outputs, low), axis=1
            )
            has_words = (lengths > 0)[:, tf.newaxis]
            found.append(tf.where(has_words, largest, tf.zeros_like(largest)))
        return tf.concat(found, axis=1)

    def compute_output_shape(
        self, input_shape: tuple[int | None, ...]
    ) -> tuple[int | None, ...]:
        return (input_shape[0], 2 * self.cell.output_size)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "width": self.width,
            "cell": keras.saving.serialize_keras_object(self.cell),
            "dropout": self.dropout,
            "jit_loop": self.jit_loop,
            "seed": self.seed,
        }
