"""What makes training go over from one phase to the next."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import keras

from rlm_tf.checks import check_integer
from rlm_tf.training.monitor import monitored

# (epoch from 0, its logs, model) -> whether the next phase begins.
Condition: TypeAlias = Callable[[int, dict[str, Any], keras.Model], bool]


class Trigger:
    """Base class: never. A subclass overrides one of the questions.

    Each is asked until the first yes.
    """

    def before_epoch(self, epoch: int) -> bool:
        """Whether the phase ends before an epoch; the first is 0."""
        return False

    def before_step(self, step: int) -> bool:
        """Whether the phase ends before a step of the optimiser; the first is 0."""
        return False

    def after_epoch(self, epoch: int, logs: dict[str, Any], model: keras.Model) -> bool:
        """Whether the phase ends after an epoch, its evaluation included."""
        return False

    def get_state(self) -> dict[str, Any]:
        """Returns what a checkpoint needs to hold."""
        return {}

    def set_state(self, state: dict[str, Any]) -> None:
        """Takes over what `get_state` returned."""


class AfterEpochs(Trigger):
    """After so many epochs.

    Args:
        epochs: At least 0.
    """

    def __init__(self, epochs: int) -> None:
        check_integer("AfterEpochs", "epochs", epochs, 0)
        self.epochs = epochs

    def before_epoch(self, epoch: int) -> bool:
        return epoch >= self.epochs


class AfterSteps(Trigger):
    """After so many steps of the optimiser.

    With `steps_per_execution` above 1, at the end of an execution.

    Args:
        steps: At least 0.
    """

    def __init__(self, steps: int) -> None:
        check_integer("AfterSteps", "steps", steps, 0)
        self.steps = steps

    def before_step(self, step: int) -> bool:
        return step >= self.steps


class MetricBelow(Trigger):
    """After the first epoch in whose logs a metric is below a value.

    Args:
        monitor: Name of the log; NaN is not below anything.
        value: A finite number.
    """

    def __init__(self, monitor: str, value: float) -> None:
        if not math.isfinite(value):
            raise ValueError(f"MetricBelow: `value` must be finite, found {value}.")
        self.monitor = monitor
        self.value = value

    def after_epoch(self, epoch: int, logs: dict[str, Any], model: keras.Model) -> bool:
        return monitored(logs, self.monitor, type(self).__name__) < self.value


class NoGain(Trigger):
    """After so many evaluations one after the other that did not beat the best.

    Args:
        monitor: Name of the log, lower is better; NaN is no gain.
        evaluations: At least 1.
        min_gain: By how much the best must be beaten, in units of `monitor`.
    """

    def __init__(
        self, monitor: str, evaluations: int = 1, *, min_gain: float = 0.0
    ) -> None:
        check_integer("NoGain", "evaluations", evaluations, 1)
        if not 0 <= min_gain < math.inf:
            raise ValueError(
                f"NoGain: `min_gain` must be finite and not negative, found {min_gain}."
            )
        self.monitor = monitor
        self.evaluations = evaluations
        self.min_gain = min_gain
        self.best = math.inf
        self.without_gain = 0

    def after_epoch(self, epoch: int, logs: dict[str, Any], model: keras.Model) -> bool:
        value = monitored(logs, self.monitor, type(self).__name__)
        gained = self.best - value > self.min_gain
        self.without_gain = 0 if gained else self.without_gain + 1
        if value < self.best:
            self.best = value
        return self.without_gain >= self.evaluations

    def get_state(self) -> dict[str, Any]:
        return {"best": self.best, "without_gain": self.without_gain}

    def set_state(self, state: dict[str, Any]) -> None:
        self.best = state["best"]
        self.without_gain = state["without_gain"]


class When(Trigger):
    """After the first epoch of which a function says so.

    Args:
        condition: Gets the epoch (from 0), its logs and the model.
    """

    def __init__(self, condition: Condition) -> None:
        self.condition = condition

    def after_epoch(self, epoch: int, logs: dict[str, Any], model: keras.Model) -> bool:
        return bool(self.condition(epoch, logs, model))
