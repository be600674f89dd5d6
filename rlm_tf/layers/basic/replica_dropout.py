"""Dropout whose masks differ between the replicas of a strategy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from rlm_tf.checks import check_integer
from rlm_tf.layers.basic.replica_noise import replica_noise, sizes_of


def replica_dropout(
    inputs: tf.Tensor,
    rate: float,
    seed_generator: keras.random.SeedGenerator,
    *,
    batch_axis: int = 0,
    noise_shape: Sequence[int | None] | None = None,
) -> tf.Tensor:
    """Returns the inputs with a share of them zeroed and the others scaled up.

    Masks are drawn for the batch of all replicas together, and each replica takes its
    rows: R replicas with B rows each lose what one device with R B rows loses.

    Args:
        inputs: `[...]`.
        rate: Share that is zeroed, in [0, 1).
        seed_generator: Where the seed of this draw comes from.
        batch_axis: The axis of `inputs` that is divided among replicas.
        noise_shape: Shape of the mask, 1 where it is shared; None entries and None mean
            those of `inputs`. With 1 as its `batch_axis` all replicas share a mask.
    """
    shape = sizes_of(inputs)
    for axis, size in enumerate(noise_shape or ()):
        shape[axis] = shape[axis] if size is None else size
    is_shared = noise_shape is not None and noise_shape[batch_axis] == 1
    # Half precision would round the rates: bfloat16 knows steps of 1/128.
    precision = tf.float64 if inputs.dtype == tf.float64 else tf.float32

    def draw(shape: Sequence[Any], seed: tf.Tensor) -> tf.Tensor:
        return tf.random.stateless_uniform(shape, seed, 0, 1, precision)

    noise = replica_noise(
        draw, shape, seed_generator, None if is_shared else batch_axis
    )
    scaled = inputs * tf.cast(1.0 / (1.0 - rate), inputs.dtype)
    kept = tf.where(noise >= rate, scaled, tf.zeros_like(scaled))
    kept.set_shape(inputs.shape)
    return kept


@keras.saving.register_keras_serializable("rlm_tf")
class ReplicaDropout(keras.layers.Dropout):
    """`keras.layers.Dropout`, but replicas take the masks of their rows.

    The state of a Keras seed generator is the same on all replicas, so rows of equal
    number would lose the same features everywhere. Here R replicas draw what one device
    draws for the whole batch (see `replica_dropout`); one device draws as Keras does,
    except that half precision compares rates with draws of single precision.

    Args:
        rate: Share that is zeroed, in [0, 1).
        noise_shape: As `keras.layers.Dropout`.
        seed: As `keras.layers.Dropout`.
        batch_axis: The axis that is divided among replicas.
        **kwargs: Of `keras.layers.Layer`.
    """

    def __init__(
        self,
        rate: float,
        noise_shape: Sequence[int | None] | None = None,
        seed: int | None = None,
        *,
        batch_axis: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(rate, noise_shape=noise_shape, seed=seed, **kwargs)
        check_integer("ReplicaDropout", "batch_axis", batch_axis, 0)
        self.batch_axis = batch_axis

    def call(self, inputs: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Returns the inputs, `[...]`, with a share of them zeroed while training."""
        if not training or self.rate == 0:
            return inputs
        return replica_dropout(
            inputs,
            self.rate,
            self.seed_generator,
            batch_axis=self.batch_axis,
            noise_shape=self.noise_shape,
        )

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "batch_axis": self.batch_axis}
