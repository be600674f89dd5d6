"""Words that are deleted from documents, in the graph: seeds, or any at random."""

from __future__ import annotations

import tensorflow as tf

# Of the draws.
_BITS = 24


def random_choice(
    uniforms: tf.Tensor, candidates: tf.Tensor, counts: tf.Tensor
) -> tf.Tensor:
    """Chooses words without replacement, all sets of that many alike.

    Args:
        uniforms: `[B, T]`, draws in [0, 1), one a word, multiples of 2^-24 (others are
            rounded down); of equal ones the first comes first. T is at most 2^39.
        candidates: bool `[B, T]`, words that may be chosen.
        counts: int `[B]`, how many; at most as many as there are candidates are.

    Returns:
        bool `[B, T]`.
    """
    # No two are equal, so that the one at the border says which are below.
    columns = tf.range(tf.shape(uniforms)[1], dtype=tf.int64)
    values = tf.cast(uniforms * 2.0**_BITS, tf.int64) * tf.size(columns, tf.int64)
    values = tf.where(candidates, values + columns, tf.int64.max)
    counts = tf.cast(counts, tf.int32)[:, tf.newaxis]
    ordered = tf.sort(values, axis=1)
    border = tf.gather(ordered, tf.maximum(counts - 1, 0), axis=1, batch_dims=1)
    return candidates & (values <= border) & (counts > 0)


def without(
    tokens: tf.Tensor, deleted: tf.Tensor, padding: int = 0
) -> tuple[tf.Tensor, tf.Tensor]:
    """Deletes tokens; those behind them move up, in their order.

    Args:
        tokens: int `[B, T]`.
        deleted: bool `[B, T]`.
        padding: What fills rows up, and is never kept.

    Returns:
        Tokens `[B, T]`, and how many are left, int32 `[B]`.
    """
    kept = ~deleted & (tokens != padding)
    left = tf.ragged.boolean_mask(tokens, kept)
    moved = left.to_tensor(padding, shape=[None, tokens.shape[1]])
    if tokens.shape[1] is None:
        missing = tf.shape(tokens)[1] - tf.shape(moved)[1]
        moved = tf.pad(moved, [[0, 0], [0, missing]], constant_values=padding)
    return moved, tf.cast(left.row_lengths(), tf.int32)


def whole_words(chosen: tf.Tensor, starts: tf.Tensor) -> tf.Tensor:
    """Returns the pieces of all words whose first piece is chosen, bool `[B, T]`.

    Args:
        chosen: bool `[B, T]`; what is said of other pieces than the first has no part.
        starts: bool `[B, T]`, pieces that begin a word.
    """
    # Of each row the first pieces, in order, in front.
    order = tf.argsort(tf.cast(~starts, tf.int32), axis=1, stable=True)
    of_word = tf.gather(chosen, order, batch_dims=1)
    return tf.gather(of_word, _word_numbers(starts), batch_dims=1)


def words_with(pieces: tf.Tensor, starts: tf.Tensor) -> tf.Tensor:
    """Returns the first pieces of all words that have one of some pieces.

    Args:
        pieces: bool `[B, T]`.
        starts: bool `[B, T]`, pieces that begin a word.
    """
    shape = tf.shape(pieces)
    word = _word_numbers(starts) + shape[1] * tf.range(shape[0])[:, tf.newaxis]
    found = tf.math.unsorted_segment_max(
        tf.cast(pieces, tf.int32), word, shape[0] * shape[1]
    )
    return starts & (tf.gather(found, word) > 0)


def _word_numbers(starts: tf.Tensor) -> tf.Tensor:
    """Returns which word of its row each piece is of, int32 `[B, T]`."""
    return tf.maximum(tf.cumsum(tf.cast(starts, tf.int32), axis=1) - 1, 0)
