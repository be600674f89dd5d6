"""Texts and pairs of texts as rows that encoders read, alike in Python and graphs."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from rlm_tf.checks import check_integer
from rlm_tf.data.text.special_tokens import SpecialIds

# What only parts words, ends of lines included: no text has a [SEP] of its own.
_BLANKS = "[ \t\r\n\v\f]+"


class EncodedRows(NamedTuple):
    """Rows `[CLS] text [SEP]`, or `[CLS] text [SEP] second [SEP]`, padded.

    Attributes:
        tokens: int32 `[N, T]`.
        segments: int32 `[N, T]`, 1 for tokens of a second text.
        cut: bool `[N]`, rows that do not have all of their text.
    """

    tokens: tf.Tensor
    segments: tf.Tensor
    cut: tf.Tensor


def encoded_rows(
    tables: Any,
    ids: SpecialIds,
    texts: tf.Tensor,
    texts_b: tf.Tensor | None,
    length: int,
) -> EncodedRows:
    """Encodes texts; what does not fit is cut off at the end, of the longer text first.

    Args:
        tables: `graph_tables()` of the vocabulary of an encoder.
        ids: Its special tokens.
        texts: Strings `[N]`.
        texts_b: Strings `[N]`, or None.
        length: T.

    Raises:
        ValueError: If T has no room for a token of each text.
    """
    number = 1 if texts_b is None else 2
    check_integer("encoded_rows", "length", length, 1 + 2 * number)
    room = length - 1 - number
    first, first_whole = _pieces(tables, texts, room)
    second, second_whole = first, tf.zeros_like(first_whole)
    if texts_b is not None:
        second, second_whole = _pieces(tables, texts_b, room)
    # Each may have what the other leaves, and half in any case.
    half = (room + 1) // 2
    kept = tf.minimum(first_whole, tf.maximum(room - second_whole, half))
    kept_b = tf.minimum(second_whole, room - kept)
    kept, kept_b = kept[:, tf.newaxis], kept_b[:, tf.newaxis]
    places = tf.range(length)[tf.newaxis]
    within = places - 1
    tokens = tf.where(within < kept, _at(first, within), ids.sep)
    tokens = tf.where(places == 0, ids.cls, tokens)
    end = kept + 2
    segments = tf.zeros_like(tokens)
    if texts_b is not None:
        behind = places - end
        of_second = tf.where(behind < kept_b, _at(second, behind), ids.sep)
        tokens = tf.where(behind >= 0, of_second, tokens)
        segments = tf.cast((behind >= 0) & (behind <= kept_b), tf.int32)
        end += kept_b + 1
    tokens = tf.where(places < end, tokens, ids.padding)
    cut = (first_whole > kept[:, 0]) | (second_whole > kept_b[:, 0])
    return EncodedRows(tokens, segments, cut)


def _pieces(tables: Any, texts: tf.Tensor, room: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the first pieces of texts, `[N, room]`, and how many each has, `[N]`."""
    texts = tf.convert_to_tensor(texts, tf.string)
    words = tf.strings.strip(tf.strings.regex_replace(texts, _BLANKS, " "))
    pieces = tables.encode(words)
    lengths = tf.cast(pieces.row_lengths(), tf.int32)
    return pieces.to_tensor(0, shape=[None, room]), lengths


def _at(pieces: tf.Tensor, places: tf.Tensor) -> tf.Tensor:
    """Returns the pieces at places `[N, T]` or `[1, T]`, any where there are none."""
    rows = tf.shape(pieces)[0]
    places = tf.clip_by_value(places, 0, pieces.shape[1] - 1)
    places = tf.broadcast_to(places, [rows, tf.shape(places)[1]])
    return tf.gather(pieces, places, batch_dims=1)
