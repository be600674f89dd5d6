"""What pairs of sentences and pairs of segments have in common: how they are drawn."""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_integer, check_option
from rlm_tf.data.batches.contiguous_batches import Element
from rlm_tf.data.batches.pair_batch import PairBatch, PairElement, with_pairs
from rlm_tf.objectives.raml import TAILS, Tail, geometric_log_probs


class TextPairs(abc.ABC):
    """Adds pieces X, Y*, Y- and Y of a text to each window, drawn anew each step.

    Args:
        batch_size: P, pairs of a step.
        seed: Of the draws.
        negatives: K, pieces Y- for each pair.
        rate: Probability that Y is Y* itself.
        tail: What happens to the probability of pieces that do not exist.

    Raises:
        ValueError: If an argument is out of range.
    """

    def __init__(
        self, batch_size: int, seed: int, negatives: int, rate: float, tail: Tail
    ) -> None:
        name = type(self).__name__
        if not 0 < rate <= 1:
            raise ValueError(f"{name}: `rate` must lie in (0, 1], found {rate}.")
        check_integer(name, "batch_size", batch_size, 1)
        check_integer(name, "seed", seed, 0)
        check_integer(name, "negatives", negatives, 1)
        check_option(name, "tail", tail, TAILS)
        self.batch_size = batch_size
        self.seed = seed
        self.num_negatives = negatives
        self.rate = rate
        self.tail = tail

    def _document_bounds(
        self, documents: Sequence[int] | None, length: int
    ) -> np.ndarray:
        """Returns where documents begin, sorted, and where the last ends, int64.

        Raises:
            ValueError: If a position is none of the text.
        """
        given = np.asarray([] if documents is None else documents)
        whole = given.size == 0 or np.issubdtype(given.dtype, np.integer)
        if not whole or np.any(given < 0) or np.any(given >= length):
            raise ValueError(
                f"{type(self).__name__}: `documents` must be positions in `tokens`, "
                f"whole numbers from 0 to {length - 1}, found {documents!r}."
            )
        return np.unique([0, *given.tolist(), length]).astype(np.int64)

    def _set_places(
        self,
        *,
        pieces: np.ndarray,
        firsts: np.ndarray,
        most: np.ndarray,
        near: tuple[np.ndarray, np.ndarray],
        distance: int,
        stride: int,
    ) -> None:
        """Says what there is to draw from.

        Args:
            pieces: Where Y- may begin, in order.
            firsts: Where X may begin.
            most: Pieces behind Y* of each X.
            near: Of each X, which of `pieces` Y- must not be: from and up to.
            distance: From X to Y*.
            stride: From Y* to the piece behind it.
        """
        # Once: in the function of a data set each use of an array would be a copy.
        self._pieces, self._firsts, self._most, self._low, self._high = (
            tf.constant(places, tf.int32) for places in (pieces, firsts, most, *near)
        )
        self._distance = distance
        self._stride = stride

    @abc.abstractmethod
    def _look_up(self, places: tf.Tensor) -> tf.Tensor:
        """Returns the tokens `[..., L]` of pieces by where they begin `[...]`."""

    @property
    def num_pairs(self) -> int:
        """Pairs of neighbours in the text."""
        return len(self._firsts)

    def __call__(self, element: Element, epoch: Any, step: Any) -> PairElement:
        """Returns the element with a `PairBatch` behind the tokens and start flags."""
        return with_pairs(type(self).__name__, element, self.draw(epoch, step))

    def draw(self, epoch: Any, step: Any) -> PairBatch:
        """Returns the pairs of a step, `[P, ...]`, in global rows."""
        seed = tf.constant([self.seed, 1], tf.int64)
        for data in (epoch, step):
            # Numbers of another width are other seeds.
            data = tf.cast(data, tf.int64)
            seed = tf.random.experimental.stateless_fold_in(seed, data)
        seeds = tf.unstack(tf.random.split(seed, 3))
        rows = [self.batch_size]
        pair = _below(self.num_pairs, rows, seeds[0])
        first, most = tf.gather(self._firsts, pair), tf.gather(self._most, pair)
        second = first + self._distance
        uniform = tf.random.stateless_uniform(rows, seeds[2], dtype=tf.float64)
        offsets = drawn_offsets(uniform, most, self.rate, self.tail)
        log_proposals = geometric_log_probs(
            offsets, most, rate=self.rate, tail=self.tail
        )
        return PairBatch(
            self._look_up(first),
            self._look_up(second),
            self._look_up(self._negatives(pair, seeds[1])),
            self._look_up(second + offsets * self._stride),
            tf.cast(log_proposals, tf.float32),
            offsets,
            tf.ones(rows),
        )

    def _negatives(self, pair: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
        low = tf.gather(self._low, pair)[:, tf.newaxis]
        left_out = tf.gather(self._high, pair)[:, tf.newaxis] - low
        others = _below(
            len(self._pieces) - left_out, [self.batch_size, self.num_negatives], seed
        )
        # What is not before those left out begins behind them.
        others += tf.where(others >= low, left_out, 0)
        return tf.gather(self._pieces, others)


def drawn_offsets(
    uniform: tf.Tensor, most: tf.Tensor, rate: float, tail: Tail
) -> tf.Tensor:
    """Returns geometric offsets by their inverse distribution function.

    Args:
        uniform: In [0, 1), float64 `[P]`.
        most: int `[P]`, the largest offset that exists.
        rate: Probability of 0.
        tail: `"renormalised"`: as if drawn until it exists; else: clipped.

    Returns:
        int32 `[P]`, in [0, most].
    """
    if rate == 1:
        return tf.zeros_like(most)
    log_keep = math.log1p(-rate)
    if tail == "renormalised":
        uniform *= -tf.math.expm1(log_keep * tf.cast(most + 1, tf.float64))
    offsets = tf.math.floor(tf.math.log1p(-uniform) / log_keep)
    return tf.cast(tf.minimum(offsets, tf.cast(most, tf.float64)), tf.int32)


def _below(number: Any, shape: list[int], seed: tf.Tensor) -> tf.Tensor:
    """Returns whole numbers below `number`, int32; float64 draws fit any text."""
    uniform = tf.random.stateless_uniform(shape, seed, dtype=tf.float64)
    return tf.cast(uniform * tf.cast(number, tf.float64), tf.int32)
