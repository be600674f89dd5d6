"""Batches that start at any step."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.data.batches.contiguous_batches import contiguous_batches
from rlm_tf.training import ResumableBatches
from tests.training.toy import STEPS, noise, toy_batches


def test_goes_on_where_told_and_starts_over():
    batches = ResumableBatches(tf.data.Dataset.range(5))
    assert [int(x) for x in batches.dataset] == [0, 1, 2, 3, 4]
    batches.seek(0, 3)
    assert [int(x) for x in batches.dataset] == [3, 4]
    batches.seek(1)
    assert [int(x) for x in batches.dataset] == [0, 1, 2, 3, 4]
    assert len(batches.dataset) == batches.steps == 5
    # Else the end of an epoch may wait for the thread that tunes.
    assert batches.dataset.options().autotune.enabled is False


def test_contiguous_batches():
    source = contiguous_batches(np.arange(1, 30), 2, 4, prefix=0)
    batches = ResumableBatches(source)
    assert batches.steps == source.steps
    batches.seek(7, 2)
    elements = list(batches.dataset)
    assert len(elements) == source.steps - 2
    for step, element in enumerate(elements, start=2):
        tf.nest.map_structure(
            np.testing.assert_array_equal,
            element,
            tuple(source.element(step)),
        )


def test_a_function_of_epoch_and_step():
    def elements(epoch, start):
        order = tf.random.experimental.stateless_shuffle(
            tf.range(6), seed=tf.stack([epoch, 0])
        )
        return tf.data.Dataset.from_tensor_slices(order).skip(start)

    batches = ResumableBatches(elements, steps=6)
    epochs = []
    for epoch in (0, 1, 0):
        batches.seek(epoch)
        epochs.append([int(x) for x in batches.dataset])
    assert epochs[0] == epochs[2] != epochs[1]
    batches.seek(1, 4)
    assert [int(x) for x in batches.dataset] == epochs[1][4:]


def test_transform_sees_epoch_and_step():
    batches = ResumableBatches(
        tf.data.Dataset.range(4),
        transform=lambda x, epoch, step: 100 * epoch + 10 * step + x,
    )
    batches.seek(2, 1)
    assert [int(x) for x in batches.dataset] == [211, 222, 233]


@pytest.mark.parametrize("follow", [True, False])
def test_noise_of_an_epoch_is_its_own_under_fit(follow):
    """Without a callback that sets the epoch, every epoch is epoch 0."""
    seen = []

    class Model(keras.Model):
        def train_step(self, data):
            seen.append(data.numpy())
            return {"loss": 0.0}

    batches = ResumableBatches(
        tf.data.Dataset.range(3), transform=lambda x, epoch, step: 10 * epoch + x
    )
    model = Model()
    model.compile(run_eagerly=True)
    callbacks = [batches.follow_epochs()] if follow else []
    model.fit(batches.dataset, epochs=2, verbose=0, callbacks=callbacks)
    assert seen == ([0, 1, 2, 10, 11, 12] if follow else [0, 1, 2, 0, 1, 2])


@pytest.mark.parametrize("start", [0, 2, 3, 7])
def test_passes_that_are_one_epoch(start):
    def batches(**options):
        return ResumableBatches(
            lambda epoch, start: tf.data.Dataset.range(start, 3).map(
                lambda x: 100 * epoch + x
            ),
            steps=3,
            # The epoch and the step of the pass, whichever epoch it is in.
            transform=lambda x, epoch, step: (x, 100 * epoch + step),
            **options,
        )

    one, many = batches(), batches(passes=3)
    assert many.steps == 9 and one.steps == 3
    many.seek(2, start)
    found = [[*map(int, element)] for element in many.dataset]
    expected = []
    for epoch in (6, 7, 8):
        one.seek(epoch)
        expected += [[*map(int, element)] for element in one.dataset]
    assert found == expected[start:] and all(a == b for a, b in found)
    with pytest.raises(ValueError, match=r"start_step in \[0, 9\)"):
        many.seek(0, 9)


def test_errors():
    with pytest.raises(ValueError, match="`steps` must be the number of elements"):
        ResumableBatches(tf.data.Dataset.range(3).repeat())
    with pytest.raises(ValueError, match="`passes` must be"):
        ResumableBatches(tf.data.Dataset.range(3), passes=0)
    batches = ResumableBatches(tf.data.Dataset.range(3))
    for epoch, step in ((-1, 0), (0, 3), (0, -1)):
        with pytest.raises(ValueError, match=r"start_step in \[0, 3\)"):
            batches.seek(epoch, step)
    with (
        tf.distribute.OneDeviceStrategy("CPU:0").scope(),
        pytest.raises(ValueError, match="outside `strategy"),
    ):
        ResumableBatches(tf.data.Dataset.range(3))


def test_noise_depends_on_epoch_and_step():
    batches = ResumableBatches(toy_batches(0), transform=noise)
    first = [x[0][0].numpy() for x in batches.dataset]
    batches.seek(1, 2)
    second = [x[0][0].numpy() for x in batches.dataset]
    assert len(second) == STEPS - 2
    assert any(np.any(a != b) for a, b in zip(first[2:], second, strict=True))
