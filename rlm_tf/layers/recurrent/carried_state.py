"""Recurrent state that lives from one window of a stream to the next."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


class CarriedState(tf.Module):
    """Variables with one row per stream, whose number of rows may change.

    They are not weights: `.keras` files leave them out, `tf.train.Checkpoint` keeps
    them, every replica of a distribution strategy has its own.

    Args:
        sizes: Width of each state.
        dtype: Dtype in which the states are kept.
        name: Name of the module.

    Attributes:
        values: One variable `[rows, S]` for each state.
        streams: Int variable: how many rows hold a stream that can go on; 0 at first.
    """

    def __init__(self, sizes: list[int], dtype: str, name: str) -> None:
        super().__init__(name=name)
        self.values = [
            _variable(tf.zeros([1, size], dtype), [None, size], f"{name}_{index}")
            for index, size in enumerate(sizes)
        ]
        self.streams = _variable(tf.constant(0), [], f"{name}_streams")

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
        streams = tf.convert_to_tensor(self.streams)
        starts = tf.cast(start, tf.bool)
        unknown = tf.logical_and(tf.logical_not(starts), batch_size != streams)
        check = tf.debugging.Assert(
            tf.logical_not(tf.reduce_any(unknown)),
            [
                "The carried state holds this number of streams:",
                streams,
                "but this batch has this many rows:",
                batch_size,
                "and some of them do not start a stream (start flag 0). When the batch "
                "size changes, every row must start a stream.",
            ],
        )
        states = []
        # Eager assertions return None.
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

    def write(self, states: list[tf.Tensor]) -> None:
        """Stores the states `[B, S]` after a window."""
        for value, state in zip(self.values, states, strict=True):
            value.assign(tf.stop_gradient(tf.cast(state, value.dtype)))
        self.streams.assign(tf.shape(states[0])[0])

    def reset(self, batch_size: int | None = None) -> None:
        """Sets every state to zero, as if `batch_size` streams had just started.

        Args:
            batch_size: Number of streams; None keeps their number.
        """
        rows = tf.convert_to_tensor(self.streams) if batch_size is None else batch_size
        self.streams.assign(rows)
        self._set_rows(tf.maximum(rows, 1))

    def _resize_while_traced(self, batch_size: int | None) -> None:
        """Gives the variables their number of rows before a graph runs.

        XLA compiles no assignment that changes a variable's shape. Strategies with
        several replicas exclude XLA, and there the assignment does it.
        """
        if batch_size is None or tf.executing_eagerly() or tf.distribute.has_strategy():
            return
        with tf.init_scope():
            if tf.executing_eagerly() and tf.shape(self.values[0])[0] != batch_size:
                self._set_rows(batch_size)
                # The streams are gone: only new ones may follow.
                self.streams.assign(0)

    def _set_rows(self, rows: int | tf.Tensor) -> None:
        for value in self.values:
            value.assign(tf.zeros([rows, value.shape[-1]], value.dtype))


def _variable(initial: tf.Tensor, shape: list[int | None], name: str) -> Any:
    return tf.Variable(
        initial,
        shape=shape,
        trainable=False,
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
        name=name,
    )
