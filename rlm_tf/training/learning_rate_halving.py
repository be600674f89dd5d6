"""The learning-rate schedule of the recurrent language models of IMM's authors."""

from __future__ import annotations

import logging
from typing import Any

import keras

from rlm_tf.checks import check_integer
from rlm_tf.training.best_weights import BestWeights
from rlm_tf.training.learning_rate import (
    check_settable,
    get_learning_rate,
    set_learning_rate,
)
from rlm_tf.training.monitor import monitored

_LOGGER = logging.getLogger(__name__)


class LearningRateHalving(keras.callbacks.Callback):
    """Lowers the learning rate when validation does not beat the best so far.

    After every epoch the gain is `best - value`. If it has not exceeded `min_gain` for
    `patience` epochs in a row, the learning rate is multiplied by `factor` and, if the
    epoch was worse than the best, the best weights and optimiser slots are reloaded
    (`BestWeights` says what stays). Training stops when that happens once more than
    `max_decays` times. A value that is not a number counts as no gain.

    The authors of "Induced Model Matching" train with factor 0.5 and threshold 0, and
    reload the whole checkpoint of plain SGD, which has no slots.

    Args:
        monitor: The log to watch, lower is better.
        factor: Multiplies the learning rate, in (0, 1).
        max_decays: Number of decays after which the next one stops training; None:
            never.
        reload_best: Whether a worse epoch is undone.
        min_gain: What must be gained to keep the learning rate, in units of `monitor`.
        patience: Epochs in a row without gain before the rate is lowered. A worse one
            is undone at once, if `reload_best`.

    Attributes:
        best: The best weights; `best.restore(model)` puts them into the model.
        decays: Number of decays so far.

    Raises:
        ValueError: If an argument is out of range; when training begins, if the
            optimiser has a schedule; after an epoch, if `monitor` is not in its logs.
    """

    def __init__(
        self,
        monitor: str = "val_nll",
        *,
        factor: float = 0.5,
        max_decays: int | None = None,
        reload_best: bool = True,
        min_gain: float = 0.0,
        patience: int = 1,
    ):
        super().__init__()
        if not 0 < factor < 1:
            raise ValueError(
                f"LearningRateHalving: `factor` must lie in (0, 1), found {factor}."
            )
        if max_decays is not None and max_decays < 0:
            raise ValueError(
                "LearningRateHalving: `max_decays` must be >= 0 or None, found "
                f"{max_decays}."
            )
        check_integer("LearningRateHalving", "patience", patience, 1)
        self.monitor = monitor
        self.factor = factor
        self.max_decays = max_decays
        self.reload_best = reload_best
        self.min_gain = min_gain
        self.patience = patience
        self.best = BestWeights()
        self.decays = 0
        self._waited = 0

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        check_settable(self.model, type(self).__name__)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        value = monitored(logs, self.monitor, type(self).__name__)
        gained = self.best.value - value > self.min_gain
        if value < self.best.value:
            self.best.capture(self.model, value, epoch)
        elif self.reload_best and self.best.available:
            self.best.restore(self.model)
        self._waited = 0 if gained else self._waited + 1
        if self._waited < self.patience:
            return
        self._waited = 0
        if self.max_decays is not None and self.decays >= self.max_decays:
            self.model.stop_training = True
            _LOGGER.info(
                "Epoch %d: training stops: %s %g did not beat %g (epoch %s), and the "
                "learning rate was lowered %d times already.",
                epoch + 1,
                self.monitor,
                value,
                self.best.value,
                "none" if self.best.epoch is None else self.best.epoch + 1,
                self.decays,
            )
            return
        self.decays += 1
        rate = get_learning_rate(self.model) * self.factor
        set_learning_rate(self.model, rate)
        _LOGGER.info(
            "Epoch %d: %s %g did not beat %g (epoch %s); learning rate %g.",
            epoch + 1,
            self.monitor,
            value,
            self.best.value,
            "none" if self.best.epoch is None else self.best.epoch + 1,
            rate,
        )

    def get_state(self) -> dict[str, Any]:
        """Returns the best weights, the decays and the epochs without gain."""
        return {
            "best": self.best.get_state(),
            "decays": self.decays,
            "waited": self._waited,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Takes over what `get_state` returned."""
        self.best.set_state(state["best"])
        self.decays = state["decays"]
        # Checkpoints of before there was patience have none.
        self._waited = state.get("waited", 0)
