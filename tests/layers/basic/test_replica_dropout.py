"""Masks of replicas."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.layers import ReplicaDropout
from rlm_tf.layers.basic.replica_dropout import replica_dropout


def test_one_device_draws_as_keras_does():
    ours, theirs = ReplicaDropout(0.4, seed=3), keras.layers.Dropout(0.4, seed=3)
    x = tf.ones([5, 7])
    for training in (True, False, True):
        np.testing.assert_array_equal(
            ours(x, training=training), theirs(x, training=training)
        )


@pytest.mark.parametrize(
    ("batch_axis", "noise_shape"), [(0, None), (1, None), (1, (None, None, 1))]
)
def test_replicas_draw_together_what_one_device_draws(
    two_replicas, batch_axis, noise_shape
):
    shape = [6, 8, 5]
    whole = tf.ones(shape)
    halves = tf.split(whole, 2, axis=batch_axis)
    arguments = {"seed": 3, "batch_axis": batch_axis, "noise_shape": noise_shape}
    with two_replicas.scope():
        layer = ReplicaDropout(0.5, **arguments)
    alone = ReplicaDropout(0.5, **arguments)
    run = tf.function(lambda: two_replicas.run(lambda: layer(halves[0], training=True)))
    for _ in range(2):
        parts = two_replicas.experimental_local_results(run())
        np.testing.assert_array_equal(
            tf.concat(parts, axis=batch_axis), alone(whole, training=True)
        )
    assert np.any(parts[0].numpy() != parts[1].numpy())


@pytest.mark.parametrize("in_a_loop", [False, True])
def test_replicas_with_other_numbers_of_rows(two_replicas, in_a_loop):
    """In a loop replicas cannot ask each other; they get masks all the same."""
    whole = tf.ones([5, 40])
    with two_replicas.scope():
        layer = ReplicaDropout(0.5, seed=3)
    alone = ReplicaDropout(0.5, seed=3)
    sizes = tf.data.Dataset.from_tensor_slices(whole).batch(6)

    def call(x):
        if not in_a_loop:
            return layer(x, training=True)
        return tf.while_loop(
            lambda step, _: step < 1,
            lambda step, _: (step + 1, layer(x, training=True)),
            [0, tf.zeros_like(x)],
        )[1]

    # The dataset's own step, where the sizes of batches are not known.
    iterator = iter(two_replicas.experimental_distribute_dataset(sizes))
    step = tf.function(lambda: two_replicas.run(call, args=(next(iterator),)))
    parts = two_replicas.experimental_local_results(step())
    assert [part.shape[0] for part in parts] == [3, 2]
    if not in_a_loop:
        np.testing.assert_array_equal(
            tf.concat(parts, axis=0), alone(whole, training=True)
        )


def test_mask_that_the_batch_shares_is_shared_by_replicas(two_replicas):
    with two_replicas.scope():
        layer = ReplicaDropout(0.5, (1, None), seed=3)
    run = tf.function(
        lambda: two_replicas.run(lambda: layer(tf.ones([4, 20]), training=True))
    )
    first, second = two_replicas.experimental_local_results(run())
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first[0], first[3])


def test_half_precision_keeps_small_rates():
    """bfloat16 has steps of 1/128 below 1: rates would be rounded up to them."""
    ones = tf.ones([400, 500], tf.bfloat16)
    kept = replica_dropout(ones, 0.002, keras.random.SeedGenerator(3))
    assert kept.dtype == tf.bfloat16
    share = float(tf.reduce_mean(tf.cast(kept == 0, tf.float32)))
    assert abs(share - 0.002) < 4 * (0.002 / 200_000) ** 0.5
