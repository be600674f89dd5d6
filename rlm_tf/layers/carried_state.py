"""Recurrent state that lives from one window of a stream to the next."""

from __future__ import annotations

import tensorflow as tf


class CarriedState(tf.Module):
    """Variables with one row per stream, whose number of rows may change.

    They are not weights: `.keras` files leave them out, `tf.train.Checkpoint` keeps
    them, every replica of a distribution strategy has its own.

    Args:
        sizes: Width of each state.
        dtype: Dtype in which the states are kept.
        name: Name of the module.
    """

    def __init__(self, sizes: list[int], dtype: str, name: str) -> None:
        super().__init__(name=name)
        self.values = [
            tf.Variable(
                tf.zeros([1, size], dtype),
                shape=[None, size],
                trainable=False,
                synchronization=tf.VariableSynchronization.ON_READ,
                aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
                name=f"{name}_{index}",
            )
            for index, size in enumerate(sizes)
        ]

    def read(self, start: tf.Tensor) -> list[tf.Tensor]:
        """Returns one `[B, S]` for each state, zero in the rows where a stream starts.

        Args:
            start: Int `[B]`, 1 where the row's window is the first of its stream.

        Raises:
            InvalidArgumentError: If B is not the number of rows that were stored and a
                row does not start a stream: there is no state that it could go on from.
                XLA cannot raise; there such rows are not a number.
        """
        self._resize_while_traced(start.shape[0])
        batch_size = tf.shape(start)[0]
        stored = tf.shape(self.values[0])[0]
        starts = tf.cast(start, tf.bool)
        goes_on = tf.logical_not(starts)
        unknown = tf.logical_and(goes_on, batch_size != stored)
        check = tf.debugging.Assert(
            tf.logical_not(tf.reduce_any(unknown)),
            [
                "The carried state has rows for a batch of size",
                stored,
                "but this batch has size",
                batch_size,
                "and rows that do not start a stream (start flag 0). When the batch "
                "size changes, every row must start a stream.",
            ],
        )
        states = []
        # Eager assertions return None; so do those that XLA leaves out.
        with tf.control_dependencies([] if check is None else [check]):
            for value in self.values:
                size = value.shape[-1]
                rows = tf.convert_to_tensor(value)
                # Sizes may differ, also while XLA compiles: no conditional helps there.
                padding = tf.zeros([batch_size, size], rows.dtype)
                rows = tf.concat([rows, padding], axis=0)[:batch_size]
                rows = tf.where(starts[:, None], tf.zeros_like(rows), rows)
                nan = tf.constant(float("nan"), rows.dtype)
                rows = tf.where(unknown[:, None], nan, rows)
                rows.set_shape([start.shape[0], size])
                states.append(rows)
        return states

    def reset(self, batch_size: int | None = None) -> None:
        """Sets every state to zero, with `batch_size` rows if that is given."""
        for value in self.values:
            rows = tf.shape(value)[0] if batch_size is None else batch_size
            value.assign(tf.zeros([rows, value.shape[-1]], value.dtype))

    def _resize_while_traced(self, batch_size: int | None) -> None:
        """Gives the variables their number of rows before a graph runs.

        XLA compiles no assignment that changes a variable's shape. Strategies with
        several replicas exclude XLA, and there the assignment does it.
        """
        if batch_size is None or tf.executing_eagerly() or tf.distribute.has_strategy():
            return
        with tf.init_scope():
            if (
                tf.executing_eagerly()
                and self.values[0].read_value().shape[0] != batch_size
            ):
                self.reset(batch_size)

    def write(self, states: list[tf.Tensor]) -> None:
        """Stores the states `[B, S]` after a window."""
        for value, state in zip(self.values, states, strict=True):
            value.assign(tf.stop_gradient(tf.cast(state, value.dtype)))
