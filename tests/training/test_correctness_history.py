"""Shares of right predictions: epochs by loops, both variants, replicas, mistakes."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf import distribution
from rlm_tf.training import CorrectnessHistory


@pytest.mark.parametrize("variant", ["thesis", "authors"])
def test_epochs_by_loops(variant):
    history = CorrectnessHistory(5, variant=variant)
    rng = np.random.default_rng(0)
    seen, right = np.zeros(5), np.zeros(5)
    ids = np.arange(5)
    np.testing.assert_array_equal(history.rates(ids), np.zeros(5))
    for epoch in range(1, 5):
        # One is missed now and then, and one comes twice.
        rows = [i for i in range(5) if (i + epoch) % 4] + [epoch % 5]
        was_right = rng.integers(0, 2, len(rows)).astype(bool)
        before = history.rates(ids).numpy()
        for part in (slice(0, 2), slice(2, None)):
            history.update(np.array(rows[part]), was_right[part])
        np.testing.assert_array_equal(history.rates(ids), before)
        history.end_epoch()
        for i in set(rows):
            seen[i] += 1
            right[i] += all(r for r, j in zip(was_right, rows, strict=True) if j == i)
        expected = np.divide(right, seen, out=np.zeros(5), where=seen > 0)
        if variant == "authors":
            low = right.min()
            expected = (right - low) / (epoch - low) if epoch > low else np.zeros(5)
        np.testing.assert_allclose(history.rates(ids), expected, rtol=1e-6)


def test_always_right_is_a_number():
    history = CorrectnessHistory(2, variant="authors")
    for _ in range(2):
        history.update([0, 1], [True, True])
        history.end_epoch()
    np.testing.assert_array_equal(history.rates([0, 1]), [0, 0])


def test_replicas_add_what_they_see_and_checkpoints_hold_it(tmp_path):
    strategy = distribution.strategy("mirrored")
    with strategy.scope():
        history = CorrectnessHistory(4)

    @tf.function
    def step():
        def own():
            context = tf.distribute.get_replica_context()
            ids = 2 * tf.cast(context.replica_id_in_sync_group, tf.int32)
            both = tf.stack([ids, ids + 1])
            history.update(both, both < 2)
            return history.rates([0, 1, 2, 3])

        return strategy.experimental_local_results(strategy.run(own))

    step()
    history.end_epoch()
    for rates in step():
        np.testing.assert_array_equal(rates, [1, 1, 0, 0])
    path = tf.train.Checkpoint(history=history).save(str(tmp_path / "c"))
    again = CorrectnessHistory(4)
    tf.train.Checkpoint(history=again).restore(path).assert_consumed()
    history.end_epoch()
    again.end_epoch()
    np.testing.assert_array_equal(
        again.rates([0, 1, 2, 3]), history.rates([0, 1, 2, 3])
    )


def test_mistakes():
    history = CorrectnessHistory(3)
    with pytest.raises(ValueError, match=r"rates: `ids` must lie in \[0, 3\), found 3"):
        history.rates([0, 3])
    with pytest.raises(ValueError, match=r"CorrectnessHistory\.update"):
        history.update([0, 1], [True])
    with pytest.raises(ValueError, match="`variant` must be"):
        CorrectnessHistory(3, variant="other")
