"""Quantiles of counts, whatever the batches that they come in."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.metrics import Quantiles


def test_quantiles_are_the_smallest_counts_that_reach_the_share(rng):
    counts = rng.geometric(0.1, size=[7, 31])
    metric = Quantiles(name="n", percentages=(1, 25, 50, 75, 100))
    for row in counts:
        metric.update_state(row)
    for percentage in (1, 25, 50, 75, 100):
        found = metric.result()[f"n_p{percentage}"]
        expected = np.percentile(counts, percentage, method="inverted_cdf")
        assert found == expected


def test_without_counts_and_above_the_largest():
    metric = Quantiles()
    assert set(map(float, metric.result().values())) == {0.0}
    metric.update_state(tf.constant([5000]))
    assert float(metric.result()["count_p50"]) == 1023.0
    metric.reset_state()
    metric.update_state(tf.constant([3]))
    assert float(metric.result()["count_p50"]) == 3.0


def test_config_makes_an_equal_metric():
    metric = keras.metrics.deserialize(
        keras.metrics.serialize(Quantiles("n", (10, 90), dtype="float64"))
    )
    metric.update_state([1, 2])
    results = metric.result()
    assert list(results) == ["n_p10", "n_p90"]
    assert results["n_p90"].dtype == tf.float64


def test_two_replicas_count_together(two_replicas):
    with two_replicas.scope():
        metric = Quantiles(percentages=(50,))

    @tf.function
    def update():
        def own():
            replica = tf.distribute.get_replica_context().replica_id_in_sync_group
            metric.update_state(tf.fill([3 - 2 * replica], 5 + replica))

        two_replicas.run(own)

    update()
    assert float(metric.result()["count_p50"]) == pytest.approx(5.0)
    np.testing.assert_array_equal(metric.histogram.numpy()[5:7], [3, 1])
