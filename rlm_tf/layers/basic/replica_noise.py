"""Random numbers that differ between the replicas of a strategy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import keras
import tensorflow as tf

from rlm_tf.replicas import all_reduce, num_replicas, replica_id

# (shape, seed) -> numbers, such as `tf.random.stateless_normal`.
Draw: TypeAlias = Callable[[Sequence[Any], tf.Tensor], tf.Tensor]


def replica_noise(
    draw: Draw,
    shape: Sequence[Any],
    seed_generator: keras.random.SeedGenerator,
    batch_axis: int | None,
) -> tf.Tensor:
    """Returns this replica's rows of what is drawn for the batch of all replicas.

    Replicas with B_1, ..., B_R rows get together what one device with the sum of them
    gets. The state of a Keras seed generator is the same on all replicas, so that every
    replica would draw the same numbers otherwise. Inside loops and branches replicas
    cannot ask each other for their rows: there all have to have equally many.

    Args:
        draw: Stateless function of shape and seed.
        shape: Of the result.
        seed_generator: Where the seed of this draw comes from.
        batch_axis: The axis that is divided among replicas; None: all get the same.
    """
    shape = list(shape)
    static = [size if isinstance(size, int) else None for size in shape]
    seed = tf.math.floormod(seed_generator.next(), tf.int32.max - 1)
    seed = tf.cast(seed, tf.int32)
    if num_replicas() == 1 or batch_axis is None:
        noise = draw(shape, seed)
    else:
        own_rows = shape[batch_axis]
        first, shape[batch_axis] = _place(own_rows)
        noise = draw(shape, seed)
        noise = tf.gather(noise, first + tf.range(own_rows), axis=batch_axis)
    noise.set_shape(static)
    return noise


def sizes_of(tensor: tf.Tensor) -> list[Any]:
    """Returns the sizes of a tensor's axes, as numbers where a graph knows them."""
    return [
        size if size is not None else tf.shape(tensor)[axis]
        for axis, size in enumerate(tensor.shape)
    ]


def _place(own_rows: Any) -> tuple[tf.Tensor, Any]:
    """Returns the first row of this replica among those of all, and their number."""
    replica, replicas = replica_id(), num_replicas()
    equal = own_rows * replica, own_rows * replicas
    if isinstance(own_rows, int):
        # A size that is known while a graph is traced is that of every batch.
        return equal
    mine = tf.one_hot(replica, replicas, dtype=tf.int32) * own_rows
    try:
        rows = all_reduce(mine)
    except RuntimeError:
        return equal
    before = tf.range(replicas) < replica
    return tf.reduce_sum(tf.where(before, rows, 0)), tf.reduce_sum(rows)
