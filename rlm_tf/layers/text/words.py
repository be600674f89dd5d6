"""Words of strings in a graph, as `labelling.seed_tokens` cuts them."""

from __future__ import annotations

import tensorflow as tf

from rlm_tf.data.text.tokenisation import SEPARATOR
from rlm_tf.data.text.vocabulary_tables import valid_utf8
from rlm_tf.labelling.seed_tokens import (
    FINAL_SIGMA,
    PUNCTUATION,
    SIGMA,
    WHITE_SPACE,
    WORD,
)
from rlm_tf.labelling.word_list import PADDING, UNKNOWN, WordList


def cut_words(strings: tf.Tensor) -> tf.RaggedTensor:
    """Returns the words of texts in lower case, without symbols, `[N, (T)]`.

    Args:
        strings: `[N]`, any bytes; what is not UTF-8 becomes U+FFFD.
    """
    strings = _lowered(valid_utf8(strings))
    strings = tf.strings.regex_replace(strings, SEPARATOR, " ")
    strings = tf.strings.regex_replace(strings, "\n", " ")
    strings = tf.strings.regex_replace(strings, f"({WORD})", r" \1 ")
    # What is left of symbols is no word.
    parts = tf.strings.split(strings)
    words = tf.strings.regex_full_match(parts.flat_values, WORD)
    return tf.ragged.boolean_mask(parts, parts.with_flat_values(words))


def cut_published(strings: tf.Tensor) -> tf.RaggedTensor:
    """Returns the tokens of texts as the authors of the rule cut them, `[N, (T)]`."""
    strings = tf.strings.regex_replace(valid_utf8(strings), PUNCTUATION, "")
    strings = tf.strings.regex_replace(_lowered(strings), WHITE_SPACE, " ")
    return tf.strings.split(strings)


def _lowered(strings: tf.Tensor) -> tf.Tensor:
    # What is behind a NUL would be lost; no word has one of either.
    strings = tf.strings.regex_replace(strings, r"\x00", "\x01")
    strings = tf.strings.lower(strings, encoding="utf-8")
    return tf.strings.regex_replace(strings, FINAL_SIGMA, SIGMA)


class WordTable(tf.Module):
    """`WordList.rows` in a graph.

    Args:
        words: The list.
    """

    def __init__(self, words: WordList) -> None:
        super().__init__(name="word_table")
        first = len(words) - len(words.words)
        with tf.init_scope():
            self._table = tf.lookup.StaticHashTable(
                tf.lookup.KeyValueTensorInitializer(
                    tf.constant(words.words, tf.string),
                    tf.range(first, len(words), dtype=tf.int32),
                ),
                default_value=UNKNOWN,
            )

    def ids(self, strings: tf.Tensor) -> tf.RaggedTensor:
        """Returns the ids of texts, int32 `[N, (T)]`."""
        words = cut_words(tf.convert_to_tensor(strings, tf.string))
        return words.with_flat_values(self._table.lookup(words.flat_values))

    def rows(self, strings: tf.Tensor, length: int | None = None) -> tf.Tensor:
        """Returns texts as rows of ids, int32 `[N, length]`.

        Args:
            strings: `[N]`, any bytes.
            length: Longer ones are cut; None: as long as the longest, one at least.
        """
        ids = self.ids(strings)
        if length is not None:
            return ids.to_tensor(PADDING, shape=[None, length])
        found = ids.to_tensor(PADDING)
        missing = tf.maximum(1 - tf.shape(found)[1], 0)
        return tf.pad(found, [[0, 0], [0, missing]], constant_values=PADDING)
