"""Distributions of which the k largest probabilities are known, and a softmax' share.

What is stored of a large teacher's predictions: all other words are one lump.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import tensorflow as tf

from rlm_tf.numerics import multiply_no_nan_log
from rlm_tf.objectives.divergences import divergence, log_sum, safe_log
from rlm_tf.objectives.linear_softmax import Exponentials

_LEAST_SHARE = 1e-37
# Where the words outside the top have less of a row, they are added up one by one: the
# difference of two sums would be rounding.
_TOLD_BY_DIFFERENCE = 0.03
# A row's scale goes to the thin side of a product if it lies between these.
_SMALL, _LARGE = 1e-3, 1e3


class LumpedProbs(NamedTuple):
    """Rows of k words, and a lump of all others, which have what is left of 1.

    Attributes:
        words: Int `[N, k]`, without repetition within a row.
        log_probs: `[N, k]`, their log-probabilities.
        log_rest: `[N]`, that of the lump; minus infinity where there is no other word.
    """

    words: tf.Tensor
    log_probs: tf.Tensor
    log_rest: tf.Tensor

    @classmethod
    def of_words(
        cls, words: tf.Tensor, log_probs: tf.Tensor, size: int | tf.Tensor
    ) -> LumpedProbs:
        """Returns rows whose lump has what their words leave, of `size` words."""
        left = tf.maximum(1 - tf.reduce_sum(tf.exp(log_probs), axis=1), 0)
        # What rounding leaves where there is no other word.
        left = tf.where(tf.shape(words)[1] < size, left, tf.zeros_like(left))
        return cls(words, log_probs, safe_log(left))

    def places(self) -> tf.Tensor:
        """Returns row and word of each entry, int64 `[N k, 2]`."""
        words = tf.cast(self.words, tf.int64)
        rows = tf.range(tf.shape(words, tf.int64)[0])[:, tf.newaxis]
        rows = tf.broadcast_to(rows, tf.shape(words))
        return tf.reshape(tf.stack([rows, words], axis=-1), [-1, 2])

    def rest(self) -> tf.Tensor:
        """Returns the lump's probability, `[N]`."""
        return tf.exp(self.log_rest)

    def constant(self, dtype: tf.DType) -> LumpedProbs:
        """Returns the same in a dtype, without a gradient."""
        log_probs, log_rest = (
            tf.stop_gradient(tf.cast(x, dtype)) for x in (self.log_probs, self.log_rest)
        )
        return self._replace(log_probs=log_probs, log_rest=log_rest)

    def entropy(self) -> tf.Tensor:
        """Returns `-sum p ln p`, nats, `[N]`, of the words and the lump."""
        own = multiply_no_nan_log(tf.exp(self.log_probs), self.log_probs)
        of_rest = multiply_no_nan_log(self.rest(), self.log_rest)
        return -tf.reduce_sum(own, axis=1) - of_rest


class LumpedLoss(NamedTuple):
    """What a softmax says of lumped distributions.

    Attributes:
        loss: `[N]`, nats, `-sum_(i in top) p_i ln q_i - p_rest ln q_rest`.
        log_rest: `[N]`, ln q_rest; minus infinity where there is no other word.
    """

    loss: tf.Tensor
    log_rest: tf.Tensor


def lumped_cross_entropy(logits: tf.Tensor, probs: LumpedProbs) -> LumpedLoss:
    """Returns the cross-entropy of lumped distributions.

    Args:
        logits: `[N, V]`, single precision or wider; q is their softmax.
        probs: p, of the dtype of the logits.
    """
    top, log_rest = _log_shares(logits, probs)
    loss = -tf.reduce_sum(multiply_no_nan_log(tf.exp(probs.log_probs), top), axis=1)
    return LumpedLoss(loss - multiply_no_nan_log(probs.rest(), log_rest), log_rest)


def lumped_divergence(logits: tf.Tensor, probs: LumpedProbs) -> LumpedLoss:
    """Returns KL(p || q), which is that less the entropy; it does not cancel.

    Args:
        logits: As in `lumped_cross_entropy`.
        probs: p, likewise.
    """
    top, log_rest = _log_shares(logits, probs)
    log_p = tf.concat([probs.log_probs, probs.log_rest[:, tf.newaxis]], axis=1)
    log_q = tf.concat([top, log_rest[:, tf.newaxis]], axis=1)
    return LumpedLoss(divergence(log_p, log_q), log_rest)


def _log_shares(logits: tf.Tensor, probs: LumpedProbs) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns log-probabilities of the words `[N, k]`, and of all others `[N]`."""
    log_q = tf.nn.log_softmax(logits)
    top = tf.gather(log_q, probs.words, batch_dims=1)
    # Not by 1 - sum q: that is rounding where the softmax is sure.
    others = tf.tensor_scatter_nd_update(
        log_q, probs.places(), tf.fill([tf.size(top)], tf.cast(-math.inf, log_q.dtype))
    )
    return top, log_sum(others)


class LumpedTargets:
    """The share of lumped distributions in the loss of a linear softmax.

    Of word v its gradient is q_v - p_v, and, within the lump,
    q_v (1 - p_rest / q_rest): rows of exponentials that are scaled, but for k entries.
    In single precision the scale of a row goes to the thin side of the products, and
    its entries are divided by it, so that no pass over `[N, V]` is added.

    Args:
        probs: p.
        logits: `[N, V]`.
        is_half: Whether products are in half precision, which has no room for that.
    """

    def __init__(
        self, probs: LumpedProbs, logits: tf.Tensor, is_half: bool = False
    ) -> None:
        self._is_half = is_half
        self._probs = probs.constant(logits.dtype)
        self._places = self._probs.places()
        self._rest = self._probs.rest()
        self._top = tf.exp(self._probs.log_probs)
        self._logits = logits
        chosen = tf.gather(logits, self._probs.words, batch_dims=1)
        self._inner = tf.reduce_sum(multiply_no_nan_log(self._top, chosen), axis=1)

    def loss(self, found: Exponentials) -> tf.Tensor:
        """Returns `lumped_cross_entropy`, `[N]`, of exponentials of the logits."""
        self._others = self._outside(found)
        mass = tf.reduce_sum(self._top, axis=1)
        log_rest = tf.math.log(self._others / found.sums)
        return mass * found.log_partition - self._inner - self._rest * log_rest

    def scales(self, h: tf.Tensor) -> tf.Tensor:
        """Returns what `scales` of `pull_back` have of this loss, `[N]`.

        Args:
            h: `[N]`, upstream of it.
        """
        return h * (tf.reduce_sum(self._top, axis=1) + self._rest)

    def subtracted(
        self, values: tf.Tensor, sums: tf.Tensor, scales: tf.Tensor, h: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns `values` and `scales` of `pull_back`.

        Args:
            values: `[N, V]`, exponentials.
            sums: `[N]`, of them.
            scales: `[N]`, those of all losses.
            h: `[N]`, upstream of this loss.
        """
        shares = tf.math.divide_no_nan(h * sums, scales)
        kept = 1 - shares * self._rest / self._others
        entries = tf.gather(values, self._probs.words, batch_dims=1)
        entries -= self._top * shares[:, tf.newaxis]
        if self._is_half:
            values *= kept[:, tf.newaxis]
        else:
            size = tf.abs(kept)
            is_scale = (size > _SMALL) & (size < _LARGE)
            rows = tf.where(~is_scale)
            few = tf.gather(values, rows[:, 0]) * tf.gather(kept, rows)
            # Nothing else reads the exponentials then, and they are overwritten.
            with tf.control_dependencies([entries]):
                values = tf.tensor_scatter_nd_update(values, rows, few)
            kept = tf.where(is_scale, kept, tf.ones_like(kept))
            scales *= kept
            entries /= kept[:, tf.newaxis]
        values = tf.tensor_scatter_nd_update(
            values, self._places, tf.reshape(entries, [-1])
        )
        return values, scales

    def _outside(self, found: Exponentials) -> tf.Tensor:
        """Returns the sum of the exponentials of the words outside the top, `[N]`."""
        top = tf.gather(found.values, self._probs.words, batch_dims=1)
        others = found.sums - tf.reduce_sum(top, axis=1)
        rows = tf.where(others < _TOLD_BY_DIFFERENCE * found.sums)
        few = LumpedProbs(*(tf.gather(x, rows[:, 0]) for x in self._probs))
        values = tf.tensor_scatter_nd_update(
            tf.gather(found.values, rows[:, 0]),
            few.places(),
            tf.zeros([tf.size(few.words)], top.dtype),
        )
        others = tf.tensor_scatter_nd_update(
            others, rows, tf.reduce_sum(values, axis=1)
        )
        # Of a softmax that gives the lump less than can be told, the least.
        return tf.maximum(others, found.sums * _LEAST_SHARE)

    def without_bases(
        self, gradients: list[tf.Tensor], upstream: tf.Tensor
    ) -> list[tf.Tensor]:
        """Returns gradients as they are: there are no bases."""
        del upstream
        return gradients
