"""Losses that are not finite."""

from __future__ import annotations

import logging

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.training import (
    DivergenceGuard,
    LearningRateHalving,
    TrainingDivergedError,
)
from rlm_tf.training.learning_rate import get_learning_rate
from tests.training.test_resume import interrupted
from tests.training.toy import STEPS, assert_same, train


class Break(keras.callbacks.Callback):
    """Spoils weights and carried state before one step."""

    def __init__(self, epoch, step, value=np.nan):
        super().__init__()
        self.at, self.value = (epoch, step), value

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch

    def on_train_batch_begin(self, batch, logs=None):
        if (self.epoch, batch) == self.at:
            self.model.out.bias.assign(self.value * tf.ones_like(self.model.out.bias))
            carried = self.model.carried["training"]
            carried.assign(self.value * tf.ones_like(carried))


def test_stops_with_the_metric_the_epoch_and_the_step(tmp_path):
    guard = DivergenceGuard(every_steps=2)
    with pytest.raises(
        TrainingDivergedError,
        match=r"epoch 1, at step 4: loss = nan, nll = nan; learning rate",
    ):
        train(tmp_path, callbacks=[Break(0, 2), guard])


def test_stops_at_the_end_of_an_epoch_at_the_latest(tmp_path):
    with pytest.raises(TrainingDivergedError, match=r"at its end: .*val_nll = nan"):
        train(tmp_path, callbacks=[Break(1, STEPS - 1), DivergenceGuard()])


def test_falls_back_to_the_best_weights(tmp_path, caplog):
    def make():
        halving = LearningRateHalving(factor=0.9)
        guard = DivergenceGuard(
            every_steps=2, recover=True, factor=0.25, best=halving.best
        )
        return {"callbacks": [halving, guard, Break(1, 3)]}

    with caplog.at_level(logging.WARNING):
        result = train(tmp_path / "one", **make())
    assert "Recovery 1 of at most 3: weights of epoch 1, learning rate 0.125" in (
        caplog.text
    )
    assert result["callbacks"][1].recoveries == 1
    assert get_learning_rate(result["model"]) <= 0.125
    assert all(np.all(np.isfinite(v)) for v in result["arrays"].values())
    assert np.all(np.isfinite(result["history"]["loss"]))
    assert result["epochs"] == [0, 1, 2, 3]
    # A run killed after the recovery makes it again or keeps it, with the same bits.
    moments = (STEPS + 4, 1)
    resumed = interrupted(tmp_path / "two", *moments, make=make, every_steps=1)
    assert_same(resumed, result)


def test_without_best_weights_the_last_look_is_used(tmp_path, caplog):
    guard = DivergenceGuard(every_steps=2, recover=True)
    result = train(tmp_path, epochs=1, callbacks=[guard, Break(0, 3)])
    assert "weights of epoch 1" in caplog.text
    assert np.all(np.isfinite(result["history"]["val_loss"]))


class Counter(keras.callbacks.Callback):
    """Remembers how many steps there were."""

    steps = 0

    def on_train_batch_begin(self, batch, logs=None):
        self.steps += 1

    def get_state(self):
        return {"steps": self.steps, "array": np.array([float(self.steps)])}

    def set_state(self, state):
        assert state["array"] == state["steps"]
        self.steps = state["steps"]


def test_falls_back_to_the_epoch_with_the_best_monitor(tmp_path, caplog):
    class Validation(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            logs["val_nll"] = [3.0, 2.0, 2.5, 2.4][epoch]

    def make():
        counter = Counter()
        guard = DivergenceGuard(
            every_steps=2, recover=True, factor=0.9, monitor="val_nll", also=[counter]
        )
        return {"callbacks": [Validation(), counter, guard, Break(3, 2)]}

    with caplog.at_level(logging.WARNING):
        result = train(tmp_path / "one", **make())
    # The second epoch was the best; its weights and the count of then come back.
    assert "weights of epoch 2, learning rate 0.45" in caplog.text
    counter = result["callbacks"][1]
    assert counter.steps == 2 * STEPS + (STEPS - 5)
    resumed = interrupted(tmp_path / "two", 3 * STEPS + 1, 4, make=make, every_steps=1)
    assert_same(resumed, result)
    assert resumed["callbacks"][1].steps == counter.steps


def test_a_much_worse_epoch_is_a_divergence(tmp_path, caplog):
    class Validation(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            logs["val_nll"] = [2.0, 2.3, 9.0, 1.9][epoch]

    guard = DivergenceGuard(recover=True, factor=0.5, monitor="val_nll", threshold=1.0)
    with caplog.at_level(logging.WARNING):
        train(tmp_path, callbacks=[Validation(), guard])
    assert guard.recoveries == 1
    assert "val_nll (best 2) = 9.0" in caplog.text


def test_a_bad_validation_lowers_the_rate_once(tmp_path):
    class BadValidation(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            if epoch == 1:
                logs["val_nll"] = np.nan

    halving = LearningRateHalving(factor=0.5, min_gain=-np.inf)
    guard = DivergenceGuard(recover=True, factor=0.25, best=halving.best)
    rates = []

    class Watch(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            rates.append(get_learning_rate(self.model))

    train(tmp_path, epochs=2, callbacks=[BadValidation(), halving, guard, Watch()])
    assert halving.decays == guard.recoveries == 1
    assert rates[1] == pytest.approx(0.25 * rates[0])


def test_gives_up(tmp_path):
    guard = DivergenceGuard(every_steps=1, recover=True, max_recoveries=1)
    with pytest.raises(TrainingDivergedError, match="There were 1 recoveries"):
        train(tmp_path, callbacks=[guard, Break(0, 2), Break(0, 4)])
    guard = DivergenceGuard(every_steps=1, recover=True)
    with pytest.raises(TrainingDivergedError, match="no earlier weights"):
        train(tmp_path / "other", callbacks=[guard, Break(0, 0)])


def test_errors():
    for argument, value in (
        ("every_steps", 0),
        ("factor", 1.0),
        ("max_recoveries", 0),
    ):
        with pytest.raises(ValueError, match=f"`{argument}` must"):
            DivergenceGuard(**{argument: value})
    with pytest.raises(ValueError, match="`threshold` must be positive and needs"):
        DivergenceGuard(threshold=1.0)
    halving = LearningRateHalving()
    with pytest.raises(ValueError, match="give `best` or `monitor`, not both"):
        DivergenceGuard(best=halving.best, monitor="val_nll")
    with pytest.raises(ValueError, match="the state of `also` at the time of `best`"):
        DivergenceGuard(best=halving.best, also=[halving])
