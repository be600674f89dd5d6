"""Training steps on replicas without `fit()`, which takes twice as long."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf


def after_steps(
    strategy: tf.distribute.Strategy,
    make: Callable[[], keras.Model],
    batches: Sequence[Any],
    *,
    rate: float = 0.1,
    optimizer: Callable[[], Any] | None = None,
) -> keras.Model:
    """Returns a model after a step of gradient descent on each batch.

    Args:
        strategy: Of one replica or of more; each has an equal number of rows, the first
            replica one more where there is one too many.
        make: Returns the model.
        batches: What `train_step` takes.
        rate: Learning rate.
        optimizer: Returns another one than that of gradient descent.
    """
    with strategy.scope():
        model = make()
        model.compile(keras.optimizers.SGD(rate) if optimizer is None else optimizer())

    @tf.function
    def step(batch: Any) -> None:
        strategy.run(model.train_step, args=(batch,))

    for batch in batches:
        step(_distributed(strategy, batch))
    return model


def _distributed(strategy: tf.distribute.Strategy, batch: Any) -> Any:
    number = strategy.num_replicas_in_sync

    def of_replica(context: tf.distribute.ValueContext) -> Any:
        index = context.replica_id_in_sync_group
        rows = [np.array_split(v, number)[index] for v in tf.nest.flatten(batch)]
        return tf.nest.pack_sequence_as(batch, [tf.constant(r) for r in rows])

    if number == 1:
        return tf.nest.map_structure(tf.constant, batch)
    return strategy.experimental_distribute_values_from_function(of_replica)


def assert_two_replicas_equal_one(
    two_replicas: tf.distribute.Strategy,
    make: Callable[[], keras.Model],
    batches: Sequence[Any],
    *,
    tolerance: float = 1e-6,
    **options: Any,
) -> None:
    """Compares weights, carried states and metrics after a step on each batch.

    Args:
        two_replicas: The strategy.
        make: Returns the model.
        batches: What `train_step` takes.
        tolerance: Absolute, of weights and carried states, which are of order 1.
        **options: Passed to `after_steps`.
    """
    start = make()
    alone = after_steps(tf.distribute.get_strategy(), make, batches, **options)
    together = after_steps(two_replicas, make, batches, **options)
    assert_equal(two_replicas, start, alone, together, tolerance)


def assert_equal(
    two_replicas: tf.distribute.Strategy,
    start: keras.Model,
    alone: keras.Model,
    together: keras.Model,
    tolerance: float = 1e-6,
) -> None:
    """Compares what two replicas and one device have made of a model.

    Args:
        two_replicas: The strategy.
        start: The model as it was.
        alone: As one device has trained it.
        together: As two replicas have.
        tolerance: Absolute, of weights and carried states, which are of order 1.
    """
    moved = False
    for found, expected, variable in zip(
        together.weights, alone.weights, alone.weights, strict=True
    ):
        assert np.all(np.isfinite(expected)), variable.path
        np.testing.assert_allclose(
            np.array(found), np.array(expected), atol=tolerance, err_msg=variable.path
        )
    for before, after in zip(start.get_weights(), alone.get_weights(), strict=False):
        moved = moved or np.any(before != after)
    assert moved, "The steps change nothing."
    if hasattr(alone, "training_state"):
        values = zip(
            together.training_state.values, alone.training_state.values, strict=True
        )
        for value, one in values:
            rows = tf.concat(two_replicas.experimental_local_results(value), axis=0)
            np.testing.assert_allclose(rows, one, atol=tolerance)
    found, expected = (m.get_metrics_result() for m in (together, alone))
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(
            np.array(found[name]), np.array(value), rtol=1e-5, atol=1e-6, err_msg=name
        )
