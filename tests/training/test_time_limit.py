"""Training for a given time."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from rlm_tf.training import TimeLimit, time_limit


class Clock:
    """Counts a second at each look, and some between."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(time_limit.time, "monotonic", lambda: self.now)


class Tick(keras.callbacks.Callback):
    """A step takes a second; remembers how many there were."""

    def __init__(self, clock):
        super().__init__()
        self.clock = clock
        self.steps = 0

    def on_train_batch_end(self, batch, logs=None):
        self.clock.now += 1.0
        self.steps += 1


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def fit(limit, clock, epochs=3):
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    tick = Tick(clock)
    data = np.ones((10, 1), np.float32)
    model.fit(data, data, 1, epochs, verbose=0, callbacks=[limit, tick])
    return tick.steps


def test_the_step_that_is_running_is_finished(clock):
    limit = TimeLimit(14.0)
    # Step 15 begins when 14 seconds are over.
    assert fit(limit, clock) == 15
    assert limit.stopped and limit.spent == 15.0


def test_time_that_is_long_enough_stops_nothing(clock):
    limit = TimeLimit(1000.0)
    assert fit(limit, clock) == 30 and not limit.stopped


def test_it_asks_whether_it_may(clock):
    limit = TimeLimit(3.0, may_stop=lambda: clock.now >= 7.0)
    assert fit(limit, clock) == 8


def test_a_resumed_run_counts_what_was_spent(clock):
    first = TimeLimit(100.0)
    fit(first, clock, epochs=1)
    clock.now += 1000.0
    second = TimeLimit(14.0)
    second.set_state(dict(first.get_state(), seconds=10.0))
    assert second.spent == 10.0
    assert fit(second, clock) == 5


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="`seconds` must be positive, found 0"):
        TimeLimit(0)
