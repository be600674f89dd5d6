"""Subword pieces inside a TensorFlow graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from rlm_tf.data.text.subwords import ESCAPES, NEWLINE_PIECE, UNESCAPES
from rlm_tf.data.text.tokenisation import EOS
from rlm_tf.data.text.vocabulary_tables import valid_utf8


class SubwordTables(tf.Module):
    """A SentencePiece model with the operations that use it.

    An attribute of this type makes a `tf.Module` or a Keras export archive carry the
    model. Its operations are TensorFlow Text's: who loads the export imports
    `tensorflow_text` before. (Of its tokenisers the plain one alone cuts BPE as
    SentencePiece does, and knows the pieces of bytes.)

    Args:
        model: The serialised SentencePiece model.
    """

    def __init__(self, model: bytes) -> None:
        super().__init__(name="subword_tables")
        self._model = model
        self._create_tokenizer()
        with tf.init_scope():
            pieces = self._tokenizer.id_to_string(
                tf.range(self._tokenizer.vocab_size())
            )
        self.pieces = tuple(piece.decode() for piece in pieces.numpy())
        self._eos_id = self.pieces.index(EOS)
        self._newline_id = self.pieces.index(NEWLINE_PIECE)

    def _create_tokenizer(self) -> None:
        # Seconds, and only of use here.
        import tensorflow_text

        with tf.init_scope():
            self._tokenizer = tensorflow_text.SentencepieceTokenizer(
                model=self._model, out_type=tf.int32
            )

    def _asked(self, question: Callable[[], Any]) -> Any:
        """Returns an answer of the tokeniser, which may have to be made anew.

        A kernel owns the model, and `keras.backend.clear_session()` empties
        TensorFlow's cache of kernels.
        """
        try:
            return question()
        except tf.errors.NotFoundError:
            self._create_tokenizer()
            return question()

    def encode(self, strings: tf.Tensor) -> tf.RaggedTensor:
        """Returns the ids of the pieces of every string, int32 `[N, (T)]`.

        Args:
            strings: `[N]`, any bytes; what is not UTF-8 becomes U+FFFD.
        """
        strings = valid_utf8(tf.convert_to_tensor(strings, tf.string))
        for old, new in ESCAPES:
            strings = tf.strings.regex_replace(strings, old, new)
        lines = tf.strings.split(strings, sep="\n")
        pieces = self._asked(lambda: self._tokenizer.tokenize(lines.flat_values))
        pieces = tf.cast(pieces, tf.int32).with_row_splits_dtype(tf.int64)
        # Every line but the last of a text ends.
        last = tf.scatter_nd(
            lines.row_limits()[:, tf.newaxis] - 1,
            tf.ones_like(lines.row_limits()),
            tf.shape(lines.flat_values, tf.int64),
        )
        ends = tf.RaggedTensor.from_row_lengths(
            tf.fill([tf.reduce_sum(1 - last)], self._eos_id), 1 - last
        )
        ended = tf.concat([pieces, ends], axis=1)
        starts = tf.gather(ended.row_splits, lines.row_splits)
        return tf.RaggedTensor.from_row_splits(ended.flat_values, starts)

    def decode(self, ids: tf.Tensor | tf.RaggedTensor) -> tf.Tensor:
        """Returns the text of ids, valid UTF-8 strings `[...]`.

        Args:
            ids: Integers `[..., T]`, dense or ragged in the last axis.
        """
        if isinstance(ids, tf.RaggedTensor):
            return self._decode(ids)
        ids = tf.convert_to_tensor(ids)
        *outer, length = tf.unstack(tf.shape(ids, tf.int64), num=ids.shape.rank)
        lengths = tf.fill([tf.reduce_prod(outer)], length)
        rows = tf.RaggedTensor.from_row_lengths(tf.reshape(ids, [-1]), lengths)
        return tf.reshape(self._decode(rows), tf.shape(ids)[:-1])

    def _decode(self, ids: tf.RaggedTensor) -> tf.Tensor:
        flat = tf.cast(ids.flat_values, tf.int32)
        flat = tf.where(flat == self._eos_id, self._newline_id, flat)
        ids = ids.with_flat_values(flat)
        text = self._asked(lambda: self._tokenizer.detokenize(ids))
        for old, new in UNESCAPES:
            text = tf.strings.regex_replace(text, old, new)
        return valid_utf8(text)
