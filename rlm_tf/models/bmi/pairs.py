"""Pairs of text as a step uses them."""

from __future__ import annotations

import functools

import tensorflow as tf

from rlm_tf.checks import known_ids
from rlm_tf.data.batches.pair_batch import PairBatch
from rlm_tf.padding import PADDING

_PIECES = ("first", "second", "negatives", "proposal")


def flat_pairs(caller: str, given: PairBatch, vocabulary_size: int | None) -> PairBatch:
    """Returns the pairs of a batch in one axis, `[P, ...]` with P = B R.

    Args:
        caller: For the message.
        given: `[B, R, ...]`, as beside a window.
        vocabulary_size: Ids must be below it; None: unknown.

    Raises:
        ValueError: If ids are none of the vocabulary; in a graph as `check_running`.
    """
    shape = given.weights.shape
    number = shape.num_elements() if shape.is_fully_defined() else None
    flat = []
    for values in given:
        one_axis = tf.concat([[-1], tf.shape(values)[2:]], axis=0)
        flat.append(tf.reshape(values, one_axis))
        flat[-1].set_shape([number, *values.shape[2:]])
    pairs = PairBatch(*flat)
    if vocabulary_size is None:
        return pairs
    known = functools.partial(known_ids, caller, vocabulary_size)
    pieces = {name: getattr(pairs, name) for name in _PIECES}
    return pairs._replace(
        **{
            # What is padding is not looked at.
            name: known(f"pairs.{name}", piece, piece != PADDING)
            for name, piece in pieces.items()
        }
    )
