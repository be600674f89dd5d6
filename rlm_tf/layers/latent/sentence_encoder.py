"""A bidirectional recurrent encoder of whole sentences."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from rlm_tf.checks import check_integer, check_shapes, checked_ids, known_ids
from rlm_tf.layers.basic.token_embedding import TokenEmbedding
from rlm_tf.layers.recurrent.cell_copies import copy_cell
from rlm_tf.layers.recurrent.hidden_state_cell import HiddenStateCell
from rlm_tf.layers.recurrent.lstm_cell import LSTMCell
from rlm_tf.layers.recurrent.recurrent import Recurrent
from rlm_tf.nested_config import NestedConfig
from rlm_tf.padding import FILL_UP, PADDING
from rlm_tf.seeds import Seeds


@keras.saving.register_keras_serializable("rlm_tf")
class SentenceEncoder(NestedConfig, keras.layers.Layer):
    """The mean of the last states of two recurrent layers, one of each direction.

    The encoder of Melis (2023, section 5.7.2): embedding, one bidirectional LSTM, and
    the mean of the hidden states after the last and after the first token.

    Args:
        vocabulary_size: V.
        cell: A cell as both are to be; each gets a copy. None: `LSTMCell(128)`.
        embedding_width: E; None: the width of the cell.
        seed: Of the initialisation.
        **kwargs: Of `keras.layers.Layer`.

    Call arguments:
        tokens: int `[B, T]`, -1 after the end of a sentence; none may be empty.

    Returns:
        Features `[B, H]`.
    """

    def __init__(
        self,
        vocabulary_size: int,
        cell: HiddenStateCell | None = None,
        *,
        embedding_width: int | None = None,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_integer("SentenceEncoder", "vocabulary_size", vocabulary_size, 2)
        cell = LSTMCell(128) if cell is None else cell
        self.vocabulary_size = vocabulary_size
        # Not an attribute of its own: Keras would count it among the layers.
        self._prototype = lambda: cell
        self.embedding_width = embedding_width
        self.output_size = cell.output_size
        self.seed = seed
        seeds = Seeds(seed, self)
        width = embedding_width or cell.output_size
        self.embedding = token_embedding(self, vocabulary_size, width, seeds)
        self.forward = recurrent(self, cell, width, seeds)
        self.backward = recurrent(self, cell, width, seeds)
        self.built = True

    @property
    def cell(self) -> HiddenStateCell:
        """The cell that was given; both directions have copies of it."""
        return self._prototype()

    def call(self, tokens: tf.Tensor, training: bool = False) -> tf.Tensor:
        tokens = checked_ids("SentenceEncoder", "tokens", tokens)
        check_shapes("SentenceEncoder", tokens=(tokens, "B T"))
        known = tokens != PADDING
        tokens = known_ids(
            "SentenceEncoder", self.vocabulary_size, "tokens", tokens, known, FILL_UP
        )
        lengths = tf.reduce_sum(tf.cast(known, tf.int32), axis=1)
        steps = tf.transpose(tf.maximum(tokens, 0))
        embedded = self.embedding(steps)
        turned = tf.reverse_sequence(embedded, lengths, seq_axis=0, batch_axis=1)
        last = tf.stack([lengths - 1, tf.range(tf.shape(lengths)[0])], axis=1)
        states = [
            tf.gather_nd(layer(inputs, training=training)[0], last)
            for layer, inputs in ((self.forward, embedded), (self.backward, turned))
        ]
        return 0.5 * (states[0] + states[1])

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "cell": keras.saving.serialize_keras_object(self.cell),
            "embedding_width": self.embedding_width,
            "seed": self.seed,
        }


def token_embedding(
    owner: keras.layers.Layer, size: int, width: int, seeds: Seeds
) -> TokenEmbedding:
    """Returns a built embedding whose entries have variance 1 / width."""
    initializer = keras.initializers.VarianceScaling(
        1.0, "fan_out", "truncated_normal", seeds.next()
    )
    layer = TokenEmbedding(
        size, width, initializer=initializer, dtype=owner.dtype_policy
    )
    layer.build((None, None))
    return layer


def recurrent(
    owner: keras.layers.Layer,
    cell: HiddenStateCell,
    width: int,
    seeds: Seeds,
) -> Recurrent:
    """Returns a built, time-major layer with a copy of a cell."""
    layer = Recurrent(
        copy_cell(cell, seeds, owner.dtype_policy),
        time_major=True,
        dtype=owner.dtype_policy,
    )
    layer.build((None, None, width))
    return layer
