"""What a classifier of documents reads: texts become rows of ids."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_integer
from rlm_tf.data.labelled.encoded_rows import encoded_rows
from rlm_tf.data.text.special_tokens import special_ids
from rlm_tf.data.text.vocabulary import Vocabulary
from rlm_tf.labelling.word_list import PADDING, WordList
from rlm_tf.layers.text.words import WordTable
from rlm_tf.untracked import Untracked

# Texts that are encoded at once.
_ROWS = 4096


class TextRows(NamedTuple):
    """Texts as rows of ids.

    Attributes:
        tokens: int32 `[N, T]`, 0 behind the last.
        cut: bool `[N]`, texts that do not fit.
    """

    tokens: Any
    cut: Any


@keras.saving.register_keras_serializable("rlm_tf")
class TextReader:
    """Makes rows of texts: of words, or of subwords between [CLS] and [SEP].

    Args:
        words: A `WordList`, or the `Vocabulary` of an encoder (`encoder_vocabulary`).
        length: T, ids of a row; longer texts are cut.

    Raises:
        ValueError: If `words` is neither, or the length too short.
    """

    def __init__(self, words: WordList | Vocabulary, length: int) -> None:
        name = type(self).__name__
        if isinstance(words, Vocabulary):
            special_ids(words)
        elif not isinstance(words, WordList):
            raise ValueError(
                f"{name}: `words` must be a WordList or a Vocabulary, found "
                f"{type(words).__name__}."
            )
        check_integer(name, "length", length, 3 if isinstance(words, Vocabulary) else 1)
        self.words = words
        self.length = length

    @property
    def size(self) -> int:
        """V, how many ids there are."""
        return len(self.words)

    @property
    def spared(self) -> tuple[int, ...]:
        """Ids that are no part of a text: [CLS], [SEP]."""
        if isinstance(self.words, WordList):
            return ()
        ids = special_ids(self.words)
        return (ids.cls, ids.sep)

    def rows(self, texts: Sequence[str]) -> TextRows:
        """Returns texts as rows of ids, arrays."""
        table = self.table()
        found = []
        for first in range(0, len(texts), _ROWS):
            own = list(texts[first : first + _ROWS])
            if isinstance(self.words, WordList):
                ids = [self.words.ids_of(text) for text in own]
                cut = np.array([len(row) > self.length for row in ids], bool)
                found.append((self.words.rows(own, self.length), cut))
            else:
                data = [text.encode("utf-8", "surrogatepass") for text in own]
                rows = table.rows(tf.constant(data), whole=True)
                found.append((rows.tokens.numpy(), rows.cut.numpy()))
        if not found:
            return TextRows(np.zeros([0, self.length], np.int32), np.zeros([0], bool))
        return TextRows(*(np.concatenate(parts) for parts in zip(*found, strict=True)))

    def table(self) -> ReaderTable:
        """Returns a new `tf.Module` that makes such rows in a graph."""
        return ReaderTable(self)

    def get_config(self) -> dict[str, Any]:
        """Returns what makes the reader anew."""
        words = self.words
        if isinstance(words, WordList):
            return {"length": self.length, "words": list(words.words)}
        model = words.model
        return {
            "length": self.length,
            "words": list(words.tokens),
            "rule": words.rule,
            "model": None if model is None else base64.b64encode(model).decode(),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> TextReader:
        """Returns the reader of a config."""
        if "rule" not in config:
            return cls(WordList(config["words"]), config["length"])
        model = config["model"]
        vocabulary = Vocabulary(
            config["words"],
            config["rule"],
            None if model is None else base64.b64decode(model),
        )
        return cls(vocabulary, config["length"])


class ReaderTable(tf.Module):
    """A `TextReader` in a graph.

    Args:
        reader: The reader.
    """

    def __init__(self, reader: TextReader) -> None:
        super().__init__(name="reader_table")
        self._length = reader.length
        words = reader.words
        self._words = WordTable(words) if isinstance(words, WordList) else None
        self._pieces: Any = None
        self._special: Any = None
        if isinstance(words, Vocabulary):
            self._pieces = words.graph_tables()
            self._special = Untracked(special_ids(words))

    def rows(self, strings: tf.Tensor, *, whole: bool = False) -> TextRows:
        """Returns texts as rows of ids.

        Args:
            strings: `[N]`, any bytes.
            whole: Whether rows have all of the length; else that of the longest text.
        """
        if self._words is not None:
            ids = self._words.ids(strings)
            cut = ids.row_lengths() > self._length
            # One long text makes no room for all.
            tokens = ids[:, : self._length].to_tensor(PADDING)
            missing = tf.maximum(1 - tf.shape(tokens)[1], 0)
            tokens = tf.pad(tokens, [[0, 0], [0, missing]], constant_values=PADDING)
        else:
            special = self._special.value
            found = encoded_rows(self._pieces, special, strings, None, self._length)
            tokens, cut = found.tokens, found.cut
            if not whole:
                present = tf.reduce_any(tokens != PADDING, axis=0)
                longest = tf.reduce_sum(tf.cast(present, tf.int32))
                tokens = tokens[:, : tf.maximum(longest, 1)]
        if whole:
            missing = self._length - tf.shape(tokens)[1]
            tokens = tf.pad(tokens, [[0, 0], [0, missing]], constant_values=PADDING)
            tokens = tf.ensure_shape(tokens, [None, self._length])
        return TextRows(tokens, cut)
