"""Distributions over many words that differ from a few shared ones in few words."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf


class SparseProbs(NamedTuple):
    """Rows `P_n = sum_k shares_nk bases_k + entries of row n`, without an `[N, V]`.

    Attributes:
        shares: `[N, K]`, what each row has of each base.
        bases: `[K, V]`.
        rows: int64 `[E]`, the row of each entry; any order, some may be of one word.
        words: int64 `[E]`.
        values: `[E]`, what the entries add; none is negative.
    """

    shares: tf.Tensor
    bases: tf.Tensor
    rows: tf.Tensor
    words: tf.Tensor
    values: tf.Tensor

    def at(self, rows: tf.Tensor, number: int | tf.Tensor) -> SparseProbs:
        """Returns `number` rows, these at distinct places, the others all zero.

        Args:
            rows: int `[N]`, where each row goes.
            number: Of rows in all.
        """
        shape = [number, tf.shape(self.shares)[1]]
        shares = tf.scatter_nd(rows[:, tf.newaxis], self.shares, shape)
        return self._replace(
            shares=tf.ensure_shape(shares, [None, self.shares.shape[1]]),
            rows=tf.cast(tf.gather(rows, self.rows), tf.int64),
        )

    def places(self) -> tf.Tensor:
        """Returns row and word of each entry, int64 `[E, 2]`."""
        return tf.stack([self.rows, self.words], axis=1)

    def mass(self) -> tf.Tensor:
        """Returns the sums of the rows, `[N]`."""
        shared = tf.linalg.matvec(self.shares, tf.reduce_sum(self.bases, axis=1))
        return shared + self.row_sums(self.values)

    def row_sums(self, values: tf.Tensor) -> tf.Tensor:
        """Returns the sums `[N]` over the entries of a row of one value `[E]` each."""
        return tf.math.unsorted_segment_sum(values, self.rows, tf.shape(self.shares)[0])

    def dense(self) -> tf.Tensor:
        """Returns the rows, `[N, V]`."""
        return tf.tensor_scatter_nd_add(
            tf.matmul(self.shares, self.bases), self.places(), self.values
        )
