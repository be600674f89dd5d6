"""Dropout whose masks differ between the replicas of a strategy."""

from __future__ import annotations

import keras
import tensorflow as tf


@keras.saving.register_keras_serializable("rlm_tf")
class ReplicaDropout(keras.layers.Dropout):
    """`keras.layers.Dropout`, but every replica draws masks of its own.

    The state of a Keras seed generator is the same on all replicas, so rows of equal
    number would lose the same features everywhere. Here the number of the replica goes
    into the seed; the first replica, and a single device, draw as Keras does.

    Arguments as `keras.layers.Dropout`.
    """

    def call(self, inputs: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Returns the inputs, `[...]`, with a share of them zeroed while training."""
        if not training or self.rate == 0:
            return inputs
        seed = tf.math.floormod(self.seed_generator.next(), tf.int32.max - 1)
        seed = tf.cast(seed, tf.int32)
        context = tf.distribute.get_replica_context()
        replica = tf.cast(context.replica_id_in_sync_group, tf.int32)
        # An odd number: no two replicas meet again.
        seed += tf.stack([replica * 0x3504F333, tf.zeros_like(replica)])
        return tf.nn.experimental.stateless_dropout(
            inputs, self.rate, seed, noise_shape=self.noise_shape
        )
