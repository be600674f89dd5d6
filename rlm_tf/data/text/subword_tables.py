"""Subword pieces inside a TensorFlow graph."""

from __future__ import annotations

import tensorflow as tf

from rlm_tf.data.text.line_tables import LineTables
from rlm_tf.data.text.subwords import ESCAPES, NEWLINE_PIECE, UNESCAPES
from rlm_tf.data.text.tokenisation import EOS


class SubwordTables(LineTables):
    """A SentencePiece model with the operations that use it; see `LineTables`.

    Of TensorFlow Text's tokenisers the plain one alone cuts BPE as SentencePiece does,
    and knows the pieces of bytes.

    Args:
        model: The serialised SentencePiece model.
    """

    def __init__(self, model: bytes) -> None:
        self._model = model
        super().__init__("subword_tables")
        with tf.init_scope():
            pieces = self._tokenizer.id_to_string(
                tf.range(self._tokenizer.vocab_size())
            )
        self.pieces = tuple(piece.decode() for piece in pieces.numpy())
        self._newline_id = self.pieces.index(NEWLINE_PIECE)

    def _create_tokenizer(self) -> None:
        # Seconds, and only of use here.
        import tensorflow_text

        with tf.init_scope():
            self._tokenizer = tensorflow_text.SentencepieceTokenizer(
                model=self._model, out_type=tf.int32
            )

    @property
    def _eos_id(self) -> int:
        return self.pieces.index(EOS)

    def _cut(self, lines: tf.Tensor) -> tf.RaggedTensor:
        for old, new in ESCAPES:
            lines = tf.strings.regex_replace(lines, old, new)
        return self._asked(lambda: self._tokenizer.tokenize(lines))

    def _joined(self, ids: tf.RaggedTensor) -> tf.Tensor:
        flat = tf.cast(ids.flat_values, tf.int32)
        flat = tf.where(flat == self._eos_id, self._newline_id, flat)
        ids = ids.with_flat_values(flat)
        text = self._asked(lambda: self._tokenizer.detokenize(ids))
        for old, new in UNESCAPES:
            text = tf.strings.regex_replace(text, old, new)
        return text
