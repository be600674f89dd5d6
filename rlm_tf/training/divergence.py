"""What to do when the loss is no longer a finite number."""

from __future__ import annotations

import copy
import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np

from rlm_tf.checks import check_integer
from rlm_tf.diverged_error import TrainingDivergedError
from rlm_tf.training.best_weights import BestWeights
from rlm_tf.training.callback_state import get_callback_state, set_callback_state
from rlm_tf.training.learning_rate import (
    check_settable,
    get_learning_rate,
    set_learning_rate,
)
from rlm_tf.training.monitor import monitored, read_metrics
from rlm_tf.training.state_variables import first_not_finite, state_variables

_LOGGER = logging.getLogger(__name__)


class DivergenceGuard(keras.callbacks.Callback):
    """Stops training at a metric that is not finite, or falls back and goes on.

    Metrics are means over the epoch so far, so one bad step shows in all later ones; it
    is enough to look every few steps. With `recover`, the best weights come back with
    what the optimiser knew when it had them, the learning rate is multiplied by
    `factor`, carried states that are not finite become zero, metrics start anew, and
    training goes on at the same position in the data. The logs of that epoch cover the
    steps after the recovery.

    Args:
        every_steps: Steps between looks within an epoch. Epochs' ends are always looked
            at, their validation included.
        recover: Whether to fall back instead of stopping.
        factor: Multiplies the learning rate at a recovery, in (0, 1). A callback before
            this one, such as `LearningRateHalving`, may have lowered it already for the
            same epoch; then the lower of the two rates counts, not their product.
        max_recoveries: After so many recoveries the next one stops training.
        best: The weights to fall back to, such as `LearningRateHalving(...).best`. None
            (or none yet): see `monitor`.
        monitor: Without `best`, the guard falls back to the epoch with the lowest value
            of this log. None (or no epoch yet): to the last look that found all in
            order.
        threshold: An epoch whose `monitor` exceeds the lowest so far by more than this
            counts as divergence, too; None: it does not.
        highest: What logs may be at the end of an epoch; one that is not below counts
            as divergence, too: `{"discriminator": 0.69}` finds a detector whose loss is
            stuck at ln 2. The first epoch is let pass.
        highest_epochs: So many epochs one after the other must end so: a model that
            only is slow gets on meanwhile.
        also: Callbacks whose state goes back with the weights of `monitor` or of the
            last look: by their `rewind(state)`, or `set_state(state)` if they have
            none. Averages of weights belong here, before the guard among callbacks:
            running sums that have met a weight that is not a number never recover.
            Not beside `best`, which knows the model's weights only.

    Attributes:
        recoveries: Number of recoveries so far.

    Raises:
        ValueError: If an argument is out of range; when training begins, if recovery is
            on and the optimiser has a schedule.
        TrainingDivergedError: From `fit()`, when training stops.
    """

    def __init__(
        self,
        *,
        every_steps: int = 50,
        recover: bool = False,
        factor: float = 0.5,
        max_recoveries: int = 3,
        best: BestWeights | None = None,
        monitor: str | None = None,
        threshold: float | None = None,
        highest: Mapping[str, float] | None = None,
        highest_epochs: int = 1,
        also: Sequence[keras.callbacks.Callback] = (),
    ):
        super().__init__()
        check_integer("DivergenceGuard", "every_steps", every_steps, 1)
        if not 0 < factor < 1:
            raise ValueError(
                f"DivergenceGuard: `factor` must lie in (0, 1), found {factor}."
            )
        check_integer("DivergenceGuard", "max_recoveries", max_recoveries, 1)
        check_integer("DivergenceGuard", "highest_epochs", highest_epochs, 1)
        if best is not None and monitor is not None:
            raise ValueError("DivergenceGuard: give `best` or `monitor`, not both.")
        if best is not None and also:
            raise ValueError(
                "DivergenceGuard: the state of `also` at the time of `best` is not "
                "known; fall back to the weights of `monitor` instead."
            )
        if threshold is not None and (monitor is None or not threshold > 0):
            raise ValueError(
                "DivergenceGuard: `threshold` must be positive and needs `monitor`, "
                f"found {threshold} and monitor={monitor!r}."
            )
        self.every_steps = every_steps
        self.recover = recover
        self.factor = factor
        self.max_recoveries = max_recoveries
        self.best = best
        self.monitor = monitor
        self.threshold = threshold
        self.highest = dict(highest or {})
        self.highest_epochs = highest_epochs
        self.also = list(also)
        self.recoveries = 0
        self._last_finite = BestWeights(with_iterations=True)
        self._of_others: list[Any] = []
        self._epoch = 0
        self._rate = math.inf
        # Epochs in a row that ended above `highest`.
        self._above = 0

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        if self.recover:
            check_settable(self.model, type(self).__name__)

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._epoch = epoch
        if self.recover:
            self._rate = get_learning_rate(self.model)

    def on_train_batch_begin(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        before = batch - self.model.steps_per_execution
        if batch == 0 or batch // self.every_steps == before // self.every_steps:
            return
        self._look(read_metrics(self.model), f"step {batch}")

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        found = dict(logs or {})
        name = type(self).__name__
        stuck = {
            f"{log} (not below {most:g})": monitored(found, log, name)
            for log, most in self.highest.items()
            if epoch and monitored(found, log, name) >= most
        }
        self._above = self._above + 1 if stuck else 0
        if self._above >= self.highest_epochs:
            self._above = 0
            self._diverged(stuck, "its end")
            return
        if self.monitor is not None and (self.recover or self.threshold is not None):
            value = monitored(found, self.monitor, name)
            lowest = self._last_finite.value
            in_order = all(math.isfinite(float(v)) for v in found.values())
            if in_order and value < lowest:
                if self.recover:
                    self._capture(value)
                else:
                    self._last_finite.value = value
            elif self.threshold is not None and value > lowest + self.threshold:
                found = {f"{self.monitor} (best {lowest:g})": value, **found}
                self._diverged(found, "its end")
                return
        self._look(found, "its end")

    def _look(self, metrics: Mapping[str, Any], moment: str) -> None:
        bad = {n: float(v) for n, v in metrics.items() if not math.isfinite(float(v))}
        if not bad:
            if not self.recover:
                return
            if self._has_best():
                self._last_finite = BestWeights(with_iterations=True)
            elif (
                not math.isfinite(self._last_finite.value)
                and first_not_finite(self.model) is None
            ):
                # Metrics are older than weights: the last update may have broken them.
                self._capture(math.inf)
            return
        self._diverged(bad, moment)

    def _capture(self, value: float) -> None:
        self._last_finite.capture(self.model, value, self._epoch)
        self._of_others = [
            copy.deepcopy(get_callback_state(callback)) for callback in self.also
        ]

    def _diverged(self, found: Mapping[str, float], moment: str) -> None:
        """Falls back, or stops training."""
        listed = ", ".join(f"{name} = {value}" for name, value in found.items())
        message = (
            f"Training diverged: epoch {self._epoch + 1}, at {moment}: {listed}; "
            f"learning rate {get_learning_rate(self.model):g}."
        )
        if not self.recover:
            raise TrainingDivergedError(
                f"{message} Lower the learning rate, clip gradients, or use "
                "DivergenceGuard(recover=True)."
            )
        if self.recoveries >= self.max_recoveries:
            raise TrainingDivergedError(
                f"{message} There were {self.recoveries} recoveries, the most allowed."
            )
        source = self.best if self._has_best() else self._last_finite
        if source is None or not source.available:
            raise TrainingDivergedError(
                f"{message} There are no earlier weights to fall back to."
            )
        self._fall_back(source, message)

    def _has_best(self) -> bool:
        return self.best is not None and self.best.available

    def _fall_back(self, source: BestWeights, message: str) -> None:
        self.recoveries += 1
        source.restore(self.model)
        if source is self._last_finite:
            for callback, state in zip(self.also, self._of_others, strict=True):
                rewind = getattr(callback, "rewind", None)
                if rewind is None:
                    set_callback_state(callback, copy.deepcopy(state))
                else:
                    rewind(copy.deepcopy(state))
        rate = min(get_learning_rate(self.model), self._rate * self.factor)
        self._rate = rate
        set_learning_rate(self.model, rate)
        for variable in state_variables(self.model).values():
            if not variable.dtype.is_floating:
                continue
            value = variable.numpy()
            if not np.all(np.isfinite(value.astype(np.float32))):
                variable.assign(np.zeros_like(value))
        self.model.reset_metrics()
        _LOGGER.warning(
            "%s Recovery %d of at most %d: weights of epoch %d, learning rate %g.",
            message,
            self.recoveries,
            self.max_recoveries,
            (source.epoch or 0) + 1,
            rate,
        )

    def get_state(self) -> dict[str, Any]:
        """Returns the number of recoveries and the weights to fall back to."""
        return {
            "recoveries": self.recoveries,
            "last_finite": self._last_finite.get_state(),
            "of_others": self._of_others,
            "above": self._above,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Takes over what `get_state` returned."""
        self.recoveries = state["recoveries"]
        self._last_finite.set_state(state["last_finite"])
        self._of_others = state["of_others"]
        # States of before it was counted have none.
        self._above = state.get("above", 0)
