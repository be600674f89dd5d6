"""BERT's pieces of words inside a TensorFlow graph."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from rlm_tf.data.text.line_tables import LineTables
from rlm_tf.data.text.tokenisation import EOS, READABLE, UNK

# Before pieces that go on a word.
WITHIN = "##"


class WordPieceTables(LineTables):
    """Pieces of words with the operations that use them; see `LineTables`.

    Args:
        pieces: In id order, `<unk>` and `<eos>` among them.
        lower_case: Whether text is read in lower case and without accents.
    """

    def __init__(self, pieces: Sequence[str], lower_case: bool) -> None:
        self._pieces = tuple(pieces)
        self._lower_case = lower_case
        super().__init__("word_piece_tables")
        self._surfaces = ["\n" if piece == EOS else piece for piece in self._pieces]

    def _create_tokenizer(self) -> None:
        # Seconds, and only of use here.
        import tensorflow_text

        with tf.init_scope():
            self._tokenizer = tensorflow_text.FastBertTokenizer(
                list(self._pieces),
                suffix_indicator=WITHIN,
                token_out_type=tf.int32,
                unknown_token=UNK,
                lower_case_nfd_strip_accents=self._lower_case,
            )

    @property
    def _eos_id(self) -> int:
        return self._pieces.index(EOS)

    def _cut(self, lines: tf.Tensor) -> tf.RaggedTensor:
        return self._asked(lambda: self._tokenizer.tokenize(lines))

    def _joined(self, ids: tf.RaggedTensor) -> tf.Tensor:
        surfaces = tf.gather(tf.constant(self._surfaces), ids.flat_values)
        text = tf.strings.reduce_join(
            ids.with_flat_values(surfaces), axis=-1, separator=" "
        )
        text = tf.strings.regex_replace(text, f" {WITHIN}", "")
        for old, new in READABLE["words"]:
            text = tf.strings.regex_replace(text, old, new)
        return text
