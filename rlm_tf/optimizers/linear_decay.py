"""A learning rate that rises in a line and falls in another."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from rlm_tf.checks import check_integer, check_range


@keras.saving.register_keras_serializable("rlm_tf")
class LinearDecay(keras.optimizers.schedules.LearningRateSchedule):
    """The rate of encoders: from 0 to the highest, then to 0.

    Step s, from 0, has `rate * (s + 1) / (warm_up + 1)` in the first `warm_up` steps,
    then `rate * (steps - s) / (steps - warm_up)`, and 0 behind the last.

    Args:
        rate: The highest.
        steps: Of training.
        warm_up: Of these, while it rises.

    Raises:
        ValueError: If a number is out of range.
    """

    def __init__(self, rate: float, steps: int, warm_up: int = 0) -> None:
        name = type(self).__name__
        check_range(name, 0.0, float("inf"), rate=rate)
        check_integer(name, "warm_up", warm_up, 0)
        check_integer(name, "steps", steps, warm_up + 1)
        self.rate = rate
        self.steps = steps
        self.warm_up = warm_up

    def __call__(self, step: Any) -> tf.Tensor:
        step = tf.cast(step, tf.float32)
        rising = (step + 1) / (self.warm_up + 1)
        falling = (self.steps - step) / (self.steps - self.warm_up)
        share = tf.where(step < self.warm_up, rising, falling)
        return self.rate * tf.maximum(share, 0.0)

    def get_config(self) -> dict[str, Any]:
        return {"rate": self.rate, "steps": self.steps, "warm_up": self.warm_up}
