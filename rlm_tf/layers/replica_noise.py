"""Random numbers that differ between the replicas of a strategy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import keras
import tensorflow as tf

# (shape, seed) -> numbers, such as `tf.random.stateless_normal`.
Draw: TypeAlias = Callable[[Sequence[Any], tf.Tensor], tf.Tensor]


def replica_noise(
    draw: Draw,
    shape: Sequence[Any],
    seed_generator: keras.random.SeedGenerator,
    batch_axis: int | None,
) -> tf.Tensor:
    """Returns this replica's rows of what is drawn for the batch of all replicas.

    R replicas with B rows each get what one device with R B rows gets. The state of a
    Keras seed generator is the same on all replicas, so that every replica would draw
    the same numbers otherwise.

    Args:
        draw: Stateless function of shape and seed.
        shape: Of the result.
        seed_generator: Where the seed of this draw comes from.
        batch_axis: The axis that is divided among replicas; None: all get the same.
    """
    shape = list(shape)
    static = [size if isinstance(size, int) else None for size in shape]
    seed = tf.math.floormod(seed_generator.next(), tf.int32.max - 1)
    context = tf.distribute.get_replica_context()
    replicas = 1 if context is None else context.num_replicas_in_sync
    seed = tf.cast(seed, tf.int32)
    if replicas == 1 or batch_axis is None:
        noise = draw(shape, seed)
    else:
        own_rows = shape[batch_axis]
        shape[batch_axis] = own_rows * replicas
        noise = draw(shape, seed)
        first = own_rows * tf.cast(context.replica_id_in_sync_group, tf.int32)
        noise = tf.gather(noise, first + tf.range(own_rows), axis=batch_axis)
    noise.set_shape(static)
    return noise
