"""Training for a given time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import keras


class TimeLimit(keras.callbacks.Callback):
    """Stops training, within an epoch, once it has taken so long.

    The step that is running is finished, and what comes after an epoch is done. Among
    the callbacks of `ExactResume` it counts the time of all processes of a run, without
    what was lost to a kill.

    Args:
        seconds: The time.
        may_stop: Asked before training is stopped; None: always.

    Attributes:
        stopped: Whether the time was over.

    Raises:
        ValueError: If `seconds` is not positive.
    """

    def __init__(
        self, seconds: float, *, may_stop: Callable[[], bool] | None = None
    ) -> None:
        super().__init__()
        if not seconds > 0:
            raise ValueError(f"TimeLimit: `seconds` must be positive, found {seconds}.")
        self.seconds = seconds
        self.may_stop = may_stop
        self.stopped = False
        self._before = 0.0
        self._began = time.monotonic()

    @property
    def spent(self) -> float:
        """Seconds that training has taken so far."""
        return self._before + time.monotonic() - self._began

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        self._began = time.monotonic()

    def on_train_batch_begin(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        over = self.spent >= self.seconds
        if over and (self.may_stop is None or self.may_stop()):
            self.stopped = True
            self.model.stop_training = True

    def get_state(self) -> dict[str, Any]:
        """Returns the time so far."""
        return {"seconds": self.spent, "stopped": self.stopped}

    def set_state(self, state: dict[str, Any]) -> None:
        """Takes over what `get_state` returned."""
        self._before, self._began = state["seconds"], time.monotonic()
        self.stopped = state["stopped"]
