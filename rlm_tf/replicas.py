"""What the replicas of a strategy tell each other inside a step.

Outside of a strategy, and in cross-replica context, there is one replica, which is the
only place where code of this library asks for the context.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf


def num_replicas() -> int:
    """Returns the number of replicas that take this step together."""
    context = tf.distribute.get_replica_context()
    return 1 if context is None else context.num_replicas_in_sync


def replica_id() -> int | tf.Tensor:
    """Returns this replica's number; where there are several, an int32 scalar."""
    if num_replicas() == 1:
        return 0
    context = tf.distribute.get_replica_context()
    return tf.cast(context.replica_id_in_sync_group, tf.int32)


def all_reduce(values: Any) -> Any:
    """Returns sums over all replicas.

    Args:
        values: A tensor, or a structure of some; not empty.

    Raises:
        RuntimeError: Inside of loops and branches, where replicas cannot ask each
            other.
    """
    if num_replicas() == 1:
        return values
    context = tf.distribute.get_replica_context()
    return context.all_reduce(tf.distribute.ReduceOp.SUM, values)


def gather_rows(values: tf.Tensor) -> tf.Tensor:
    """Returns the rows of all replicas, one after the other.

    Args:
        values: `[B_r, ...]` with B_r rows on replica r.

    Returns:
        `[B_1 + ... + B_R, ...]`, the same on every replica.
    """
    if num_replicas() == 1:
        return values
    context = tf.distribute.get_replica_context()
    gathered = context.all_gather(values, axis=0)
    return tf.ensure_shape(gathered, [None, *values.shape[1:]])


def own_part(variable: tf.Variable) -> tf.Variable:
    """Returns the part of a variable that is this replica's; another one as it is.

    Of variables of which every replica has its own (`ON_READ`). Parts have
    `scatter_add` and the like, which the whole has not.
    """
    parts = getattr(variable, "values", None)
    if parts is None:
        return variable
    number = tf.get_static_value(tf.convert_to_tensor(replica_id()))
    return parts[int(number) % len(parts)]


def sum_of_parts(variable: tf.Variable) -> np.ndarray:
    """Returns a variable, or the sum of what each replica has; outside of graphs."""
    values = getattr(variable, "values", None)
    if values is None:
        return variable.numpy()
    return np.sum([value.numpy() for value in values], axis=0)


def with_rows_of_all(
    function: Callable[..., tf.Tensor], own_rows: int | tf.Tensor, *rows: Any
) -> tf.Tensor:
    """Returns a function's values of the rows of all replicas, as far as they are own.

    Args:
        function: Maps rows `[B, ...]` to values `[B, ...]`, or to one or some less, the
            last ones missing.
        own_rows: Rows of this replica.
        *rows: Tensors, or structures of some, `[B_r, ...]` on replica r.

    Returns:
        `[B_r, ...]`; on the last replicas perhaps fewer.
    """
    if num_replicas() == 1:
        return function(*rows)
    found = function(*tf.nest.map_structure(gather_rows, rows))
    sizes = gather_rows(tf.convert_to_tensor(own_rows)[tf.newaxis])
    start = tf.reduce_sum(sizes[: replica_id()])
    return found[start : start + own_rows]
