"""Averages count the iterates of an optimiser, whatever fit() does around them."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf import averaging
from rlm_tf.optimizers import DecoupledOptimizer
from rlm_tf.training import DivergenceGuard

BATCHES = 8


def batches(known):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(BATCHES, 4, 3)).astype(np.float32)
    data = tf.data.Dataset.from_tensor_slices((x, x.sum(-1, keepdims=True)))
    if known:
        return data
    return data.filter(lambda *_: True)  # Nobody knows now how many there are.


def model_with(optimizer):
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile(optimizer, "mse")
    return model


class Iterates(keras.callbacks.Callback):
    """Keeps the weights after every change."""

    def __init__(self):
        super().__init__()
        self.kept = []

    def on_train_begin(self, logs=None):
        self._last = self.model.get_weights()

    def on_train_batch_end(self, batch, logs=None):
        weights = self.model.get_weights()
        if any((a != b).any() for a, b in zip(weights, self._last, strict=True)):
            self.kept.append(weights)
        self._last = weights


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("accumulated", [None, 4])
def test_every_change_counts_once(known, accumulated):
    optimizer = keras.optimizers.SGD(0.01, gradient_accumulation_steps=accumulated)
    model, iterates = model_with(optimizer), Iterates()
    tail = averaging.WeightAveraging(averaging.TailAverage(1))
    model.fit(batches(known), epochs=3, verbose=0, callbacks=[tail, iterates])
    assert tail.average.steps == len(iterates.kept) == 3 * BATCHES // (accumulated or 1)
    with tail.averaged(model):
        for index, weight in enumerate(model.get_weights()):
            expected = np.mean([kept[index] for kept in iterates.kept], axis=0)
            np.testing.assert_allclose(weight, expected, rtol=1e-5)


@pytest.mark.parametrize("accumulated", [None, 4])
def test_under_a_loss_scale_updates_count(accumulated):
    inner = keras.optimizers.SGD(0.01, gradient_accumulation_steps=accumulated)
    # So large a scale overflows: the first steps are left out until it has fallen.
    optimizer = keras.optimizers.LossScaleOptimizer(inner, initial_scale=2.0**127)
    model, iterates = model_with(optimizer), Iterates()
    tail = averaging.WeightAveraging(averaging.TailAverage(1))
    model.fit(batches(True), epochs=3, verbose=0, callbacks=[tail, iterates])
    assert tail.average.steps == len(iterates.kept) == int(inner.iterations)
    assert 0 < tail.average.steps < 3 * BATCHES // (accumulated or 1)


@pytest.mark.parametrize(
    ("accumulated", "updates", "scaled"),
    [((4, None), 24, False), ((4, 4), 6, False), ((2, 3), 16, True)],
)
def test_what_changes_any_part_counts(accumulated, updates, scaled):
    kernel, bias = (
        keras.optimizers.SGD(0.01, gradient_accumulation_steps=steps)
        for steps in accumulated
    )
    decoupled = DecoupledOptimizer({"kernel": kernel, "bias": bias})
    optimizer = decoupled
    if scaled:
        optimizer = keras.optimizers.LossScaleOptimizer(decoupled, 2.0)
    model, iterates = model_with(optimizer), Iterates()
    decoupled.route({v.name: [v] for v in model.trainable_variables})
    tail = averaging.WeightAveraging(averaging.TailAverage(1))
    model.fit(batches(True), epochs=3, verbose=0, callbacks=[tail, iterates])
    assert tail.average.steps == len(iterates.kept) == updates


class Diverges(keras.callbacks.Callback):
    """Makes a weight infinite before a batch."""

    def __init__(self, epoch, batch):
        super().__init__()
        self.when = (epoch, batch)

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch

    def on_train_batch_begin(self, batch, logs=None):
        if (self.epoch, batch) == self.when:
            self.when = None
            self.model.layers[0].bias.assign([np.inf])


def logged(value):
    class Logged(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            logs["value"] = value[epoch]

    return Logged()


@pytest.mark.parametrize("batch", [3, 7])
def test_recovery_loses_no_iterate_and_counts_none_twice(batch):
    model = model_with(keras.optimizers.SGD(0.01))
    tail = averaging.WeightAveraging(averaging.TailAverage(1))
    guard = DivergenceGuard(
        every_steps=1, recover=True, monitor="value", also=[tail], factor=0.9
    )
    callbacks = [logged([3.0, 2.0, 1.0]), Diverges(2, batch), tail, guard]
    model.fit(batches(True), epochs=3, verbose=0, callbacks=callbacks)
    assert guard.recoveries == 1
    # Two epochs, and the steps after the recovery: it is found one batch later, in the
    # last batch only when the epoch is over.
    left = BATCHES - batch - 1
    assert tail.average.steps == 2 * BATCHES + left
    assert np.isfinite(tail.average.proposal([])[0][0]).all()


@pytest.mark.parametrize(
    "make",
    [
        lambda: keras.optimizers.Adam(0.01, beta_1=0.0),
        lambda: keras.optimizers.Adam(0.01),
    ],
)
def test_steps_after_a_recovery_are_those_of_the_best_epoch(make):
    """The optimiser's number of iterations belongs to its second moments."""
    model = model_with(make())
    seen = []

    class Notes(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            seen.append(int(self.model.optimizer.iterations))

    values = [1.0, *[2.0] * 20]
    guard = DivergenceGuard(recover=True, monitor="value", factor=0.5)
    callbacks = [Notes(), logged(values), Diverges(20, 5), guard]
    model.fit(batches(True), epochs=21, verbose=0, callbacks=callbacks)
    assert guard.recoveries == 1
    assert seen[-2] == 20 * BATCHES
    assert int(model.optimizer.iterations) == BATCHES


def test_a_threshold_without_recovery_stops():
    guard = DivergenceGuard(monitor="value", threshold=0.5)
    model = model_with(keras.optimizers.SGD(0.01))
    with pytest.raises(ArithmeticError, match=r"value \(best 1\) = 1.6"):
        model.fit(
            batches(True),
            epochs=3,
            verbose=0,
            callbacks=[logged([1.0, 1.4, 1.6]), guard],
        )
