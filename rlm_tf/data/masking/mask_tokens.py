"""Hides some tokens of texts, which a model has to find again."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_integer, check_option, check_shapes, checked_ids
from rlm_tf.data.masking.masked_count import check_ratio, masked_count
from rlm_tf.typing import TensorLike

Scheme = Literal["mask", "electra", "bert"]
# Of masked positions: the shares that show [MASK], and a word drawn from all.
_SHARES: dict[Scheme, tuple[float, float]] = {
    "mask": (1.0, 0.0),
    "electra": (0.85, 0.0),
    "bert": (0.8, 0.1),
}
SCHEMES: tuple[Scheme, ...] = tuple(_SHARES)


class MaskedTokens(NamedTuple):
    """Texts with hidden tokens.

    Attributes:
        tokens: `[B, T]`, what is shown; dtype of the tokens that were given.
        positions: bool `[B, T]`, those that are to be found again.
    """

    tokens: tf.Tensor
    positions: tf.Tensor


def mask_tokens(
    tokens: TensorLike,
    special: TensorLike,
    *,
    padding: TensorLike | None = None,
    mask_id: int,
    vocabulary_size: int,
    ratio: float = 0.15,
    scheme: Scheme = "mask",
    word_starts: TensorLike | None = None,
    seed: int | TensorLike,
) -> MaskedTokens:
    """Chooses `masked_count` positions of each text and hides them.

    Positions are drawn without replacement, all that are not special alike (ELECTRA's
    code draws with replacement, so that fewer are masked, and averages what it writes
    to a position twice). Draws depend on the seed, the row and T alone.

    Args:
        tokens: int `[B, T]`.
        special: bool `[B, T]`, tokens that are never masked: [CLS], [SEP].
        padding: bool `[B, T]`, no tokens at all; None: there is none.
        mask_id: Id of [MASK].
        vocabulary_size: V.
        ratio: Share of the tokens that is masked, special ones counted, padding not.
        scheme: What masked positions show: "mask", always [MASK], as Dong (2025) says;
            "electra": 85 % [MASK], else the token; "bert": 80 % [MASK], 10 % a draw
            from all V ids, else the token.
        word_starts: bool `[B, T]`, tokens that begin a word: whole words are masked, in
            random order up to the first that does not fit, so rather fewer tokens than
            without; if that is the very first, as many of its tokens as fit. None:
            tokens are masked one by one.
        seed: An integer, or a seed of stateless draws, int `[2]`.

    Returns:
        Rows without any token that is not special have no positions.

    Raises:
        ValueError: If a shape does not fit or an argument is out of range; in eager
            mode also if all tokens of all rows are special.
    """
    name = "mask_tokens"
    ids = checked_ids(name, "tokens", tokens)
    special, absent, starts = _flags(name, ids, special, padding, word_starts)
    check_integer(name, "vocabulary_size", vocabulary_size, 1)
    check_integer(name, "mask_id", mask_id, 0)
    if mask_id >= vocabulary_size:
        raise ValueError(
            f"{name}: `mask_id` must be below `vocabulary_size`, {vocabulary_size}, "
            f"found {mask_id}."
        )
    check_ratio(name, ratio)
    check_option(name, "scheme", scheme, SCHEMES)
    length = ids.shape[1]
    if length is None:
        raise ValueError(f"{name}: the length T of `tokens` must be known.")
    candidates = ~(special | absent)
    some = not tf.executing_eagerly() or tf.size(ids) == 0
    if not some and not tf.reduce_any(candidates):
        raise ValueError(
            f"{name}: all tokens are special or padding; there is nothing to mask."
        )
    counts = masked_count(np.arange(length + 1), length=length, ratio=ratio)
    present = tf.reduce_sum(tf.cast(~absent, tf.int32), axis=1)
    wanted = tf.cast(tf.gather(counts, present), tf.int32)[:, tf.newaxis]
    own = _stateless_seed(seed)
    places, shown, words = tf.unstack(tf.random.split(own, 3))
    uniforms = tf.random.stateless_uniform(tf.shape(ids), places)
    if starts is None:
        chosen = _ranks(uniforms, candidates) < wanted
    else:
        chosen = _whole_words(uniforms, candidates, starts, wanted)
    chosen &= candidates
    of_mask, of_any = _SHARES[scheme]
    kind = tf.random.stateless_uniform(tf.shape(ids), shown)
    found = tf.where(chosen & (kind < of_mask), tf.cast(mask_id, ids.dtype), ids)
    if of_any:
        drawn = tf.random.stateless_uniform(
            tf.shape(ids), words, maxval=vocabulary_size, dtype=ids.dtype
        )
        is_drawn = chosen & (kind >= of_mask) & (kind < of_mask + of_any)
        found = tf.where(is_drawn, drawn, found)
    return MaskedTokens(found, chosen)


def _flags(
    name: str,
    ids: tf.Tensor,
    special: TensorLike,
    padding: TensorLike | None,
    word_starts: TensorLike | None,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor | None]:
    """Returns the flags of tokens as bool `[B, T]`."""
    given = {"special": special, "padding": padding, "word_starts": word_starts}
    flags = {
        argument: tf.cast(value, tf.bool)
        for argument, value in given.items()
        if value is not None
    }
    check_shapes(
        name,
        tokens=(ids, "B T"),
        **{argument: (value, "B T") for argument, value in flags.items()},
    )
    absent = flags.get("padding", tf.zeros_like(ids, tf.bool))
    return flags["special"], absent, flags.get("word_starts")


def _stateless_seed(seed: int | TensorLike) -> tf.Tensor:
    if isinstance(seed, int | np.integer):
        return tf.constant([seed, 0], tf.int64)
    if not tf.is_tensor(seed) and not np.issubdtype(np.asarray(seed).dtype, np.integer):
        raise ValueError(
            f"mask_tokens: `seed` must be an integer, or two, found {seed!r}."
        )
    return tf.convert_to_tensor(seed)


def _ranks(values: tf.Tensor, candidates: tf.Tensor) -> tf.Tensor:
    """Returns the place of each candidate among those of its row, by their values."""
    # Uniform numbers are below 1; their order is that of any noise that grows in them.
    values = tf.where(candidates, values, 2.0)
    return tf.argsort(tf.argsort(values, stable=True), stable=True)


def _whole_words(
    uniforms: tf.Tensor, candidates: tf.Tensor, starts: tf.Tensor, wanted: tf.Tensor
) -> tf.Tensor:
    """Returns the tokens of the words that come first, as long as they fit."""
    length = uniforms.shape[1]
    word = tf.maximum(tf.cumsum(tf.cast(starts, tf.int32), axis=1) - 1, 0)
    rank = _ranks(tf.gather(uniforms, word, batch_dims=1), candidates)
    rows = tf.shape(word)[0]
    places = word + length * tf.range(rows)[:, tf.newaxis]
    last = tf.where(candidates, rank, -1)
    last = tf.math.unsorted_segment_max(last, places, rows * length)
    fits = tf.gather(last, places) < wanted
    first = tf.where(candidates, rank, length)
    first = tf.math.unsorted_segment_min(first, places, rows * length)
    return fits | ((tf.gather(first, places) == 0) & (rank < wanted))
