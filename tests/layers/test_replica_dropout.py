"""Masks of replicas."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from rlm_tf.layers import ReplicaDropout


def test_one_device_draws_as_keras_does():
    ours, theirs = ReplicaDropout(0.4, seed=3), keras.layers.Dropout(0.4, seed=3)
    x = tf.ones([5, 7])
    for training in (True, False, True):
        np.testing.assert_array_equal(
            ours(x, training=training), theirs(x, training=training)
        )


def test_replicas_draw_masks_of_their_own(two_replicas):
    with two_replicas.scope():
        layer = ReplicaDropout(0.5, seed=3)
    run = tf.function(
        lambda: two_replicas.run(lambda: layer(tf.ones([50, 20]), training=True))
    )
    first, second = two_replicas.experimental_local_results(run())
    alike = np.mean(first.numpy() == second.numpy())
    assert abs(alike - 0.5) < 0.08
    alone = ReplicaDropout(0.5, seed=3)(tf.ones([50, 20]), training=True)
    np.testing.assert_array_equal(first, alone)
    again, _ = two_replicas.experimental_local_results(run())
    assert np.any(again.numpy() != first.numpy())
