"""Keeps the weights of the best epoch."""

from __future__ import annotations

from typing import Any

import keras

from rlm_tf.checks import check_option
from rlm_tf.training.best_weights import BestWeights
from rlm_tf.training.monitor import monitored


class KeepBest(keras.callbacks.Callback):
    """Keeps the weights of the epoch with the best value of a log.

    Keras' `ModelCheckpoint` writes them to a file; these are in the checkpoints of
    `ExactResume`, so that a resumed run knows them.

    Args:
        monitor: The log.
        mode: "min" or "max".
        ties: Which of equal epochs is kept, the "first" or the "last". Of counts over
            few examples many are equal, and later ones have the lower rates.

    Attributes:
        best: `best.restore(model)` puts them into the model; its `value` is negative
            that of the log with "max".

    Raises:
        ValueError: If a word is unknown; while training, if there is no such log.
    """

    def __init__(self, monitor: str, mode: str = "min", *, ties: str = "first") -> None:
        super().__init__()
        check_option(type(self).__name__, "mode", mode, ("min", "max"))
        check_option(type(self).__name__, "ties", ties, ("first", "last"))
        self.monitor = monitor
        self.mode = mode
        self.ties = ties
        self.best = BestWeights()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        value = monitored(dict(logs or {}), self.monitor, type(self).__name__)
        value = value if self.mode == "min" else -value
        ties = self.ties == "last" and value == self.best.value
        if value < self.best.value or ties:
            self.best.capture(self.model, value, epoch)

    def get_state(self) -> dict[str, Any]:
        """Returns the best weights."""
        return {"best": self.best.get_state()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Takes over what `get_state` returned."""
        self.best.set_state(state["best"])
