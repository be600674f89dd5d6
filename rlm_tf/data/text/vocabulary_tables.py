"""Encoding and decoding inside a TensorFlow graph."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from rlm_tf.data.text import tokenisation
from rlm_tf.data.text.tokenisation import EOS, UNK


class VocabularyTables(tf.Module):
    """The lookup tables of a vocabulary with the operations that use them.

    An attribute of this type makes a `tf.Module` or a Keras export archive carry the
    vocabulary; only operations of plain TensorFlow are used.

    Args:
        tokens: Those of the vocabulary, in id order.
        rule: Its tokenisation rule.
    """

    def __init__(self, tokens: Sequence[str], rule: str) -> None:
        super().__init__(name="vocabulary_tables")
        self._rule = rule
        self._unk_id = tokens.index(UNK) if UNK in tokens else None
        single = rule in ("characters", "bytes")
        keys, surfaces = [], []
        for token in tokens:
            surface = tokenisation.surface(token)
            if rule == "bytes" and token != UNK:
                surfaces.append(surface.encode("latin-1"))
            else:
                surfaces.append(surface.encode())
            keys.append(surfaces[-1] if single else token.encode())
        with tf.init_scope():
            self._surfaces = tf.constant(surfaces, tf.string)
            self._table = tf.lookup.StaticHashTable(
                tf.lookup.KeyValueTensorInitializer(
                    tf.constant(keys, tf.string),
                    tf.range(len(keys), dtype=tf.int64),
                ),
                default_value=-1 if self._unk_id is None else self._unk_id,
            )

    def encode(self, strings: tf.Tensor) -> tf.RaggedTensor:
        """Returns the ids of the tokens of every string.

        Args:
            strings: `[N]`, any bytes.

        Returns:
            int32 `[N, (T)]`.

        Raises:
            tf.errors.InvalidArgumentError: When run, if a token is unknown and the
                vocabulary has no `<unk>`; shows the token.
        """
        tokens = self._split(tf.convert_to_tensor(strings, tf.string))
        ids = self._table.lookup(tokens.flat_values)
        if self._unk_id is None:
            unknown = tf.boolean_mask(tokens.flat_values, ids < 0)
            with tf.control_dependencies(
                [
                    tf.debugging.Assert(
                        tf.equal(tf.size(unknown), 0),
                        ["unknown tokens, and the vocabulary has no <unk>:", unknown],
                    )
                ]
            ):
                ids = tf.identity(ids)
        return tokens.with_flat_values(tf.cast(ids, tf.int32))

    def _split(self, strings: tf.Tensor) -> tf.RaggedTensor:
        if self._rule == "bytes":
            return tf.strings.bytes_split(strings)
        strings = valid_utf8(strings)
        if self._rule == "characters":
            return tf.strings.unicode_split(strings, "UTF-8")
        if self._rule == "words":
            strings = tf.strings.regex_replace(strings, tokenisation.SEPARATOR, " ")
            strings = tf.strings.regex_replace(
                strings, f"({tokenisation.WORD_OR_SYMBOL})", r" \1 "
            )
        return tf.strings.split(tf.strings.regex_replace(strings, "\n", f" {EOS} "))

    def decode(self, ids: tf.Tensor | tf.RaggedTensor) -> tf.Tensor:
        """Returns readable text of token ids.

        Args:
            ids: Integers `[..., T]`, dense or ragged in the last axis.

        Returns:
            Valid UTF-8 strings `[...]`.
        """
        separator = "" if self._rule in ("characters", "bytes") else " "
        surfaces = tf.ragged.map_flat_values(
            lambda flat: tf.gather(self._surfaces, flat), ids
        )
        text = tf.strings.reduce_join(surfaces, axis=-1, separator=separator)
        for pattern, replacement in tokenisation.READABLE[self._rule]:
            text = tf.strings.regex_replace(text, pattern, replacement)
        return valid_utf8(text) if self._rule == "bytes" else text


def valid_utf8(strings: tf.Tensor) -> tf.Tensor:
    """`tokenisation.as_text` in a graph."""
    strings = tf.strings.unicode_transcode(
        strings, "UTF-8", "UTF-8", errors="replace", replacement_char=0xFFFD
    )
    return tf.strings.regex_replace(
        strings, tokenisation.INVALID_RUN, tokenisation.INVALID
    )
