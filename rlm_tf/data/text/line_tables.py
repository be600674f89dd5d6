"""Pieces of lines inside a TensorFlow graph, whatever cuts them."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from rlm_tf.data.text.vocabulary_tables import valid_utf8


class LineTables(tf.Module, abc.ABC):
    """Reads and writes texts of several lines, each ended by `<eos>` but the last.

    An attribute of this type makes a `tf.Module` or a Keras export archive carry what
    cuts lines. Its operations are TensorFlow Text's: who loads the export imports
    `tensorflow_text` before.

    Args:
        name: Of the module.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name=name)
        self._create_tokenizer()

    @abc.abstractmethod
    def _create_tokenizer(self) -> None:
        """Makes what cuts lines, outside any graph."""

    @property
    @abc.abstractmethod
    def _eos_id(self) -> int:
        """Of `<eos>`."""

    @abc.abstractmethod
    def _cut(self, lines: tf.Tensor) -> tf.RaggedTensor:
        """Returns the ids of lines `[L]` without newlines: `[L, (T)]`."""

    @abc.abstractmethod
    def _joined(self, ids: tf.RaggedTensor) -> tf.Tensor:
        """Returns the texts of ids `[N, (T)]`: `[N]`."""

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
        lines = tf.strings.split(strings, sep="\n")
        pieces = self._cut(lines.flat_values)
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
            return valid_utf8(self._joined(ids))
        ids = tf.convert_to_tensor(ids)
        *outer, length = tf.unstack(tf.shape(ids, tf.int64), num=ids.shape.rank)
        lengths = tf.fill([tf.reduce_prod(outer)], length)
        rows = tf.RaggedTensor.from_row_lengths(tf.reshape(ids, [-1]), lengths)
        return tf.reshape(valid_utf8(self._joined(rows)), tf.shape(ids)[:-1])
