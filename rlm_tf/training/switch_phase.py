"""The callback that moves a model to its next phase."""

from __future__ import annotations

import logging
from typing import Any

import keras

from rlm_tf.checks import check_integer
from rlm_tf.training.triggers import Condition, Trigger, When

_LOGGER = logging.getLogger(__name__)


class SwitchPhase(keras.callbacks.Callback):
    """Moves `model.phase` on, once, when its trigger says so.

    The step is traced anew, once, with the terms of the new phase. Several of these
    lead through several phases; each then needs its own `to`, and a trigger that comes
    after that of the one before.

    Args:
        trigger: `AfterEpochs`, `AfterSteps`, `MetricBelow`, `NoGain`, or a function of
            epoch (from 0), logs and model, which is asked after every epoch.
        to: The phase that begins; None: the one after the present one.

    Attributes:
        switched_to: The phase that has begun, or None.

    Raises:
        ValueError: If an argument is out of range; when training begins, if the model
            has no phases.
    """

    def __init__(self, trigger: Trigger | Condition, *, to: int | None = None) -> None:
        super().__init__()
        if not isinstance(trigger, Trigger):
            if not callable(trigger):
                raise ValueError(
                    "SwitchPhase: `trigger` must be a trigger or a function, found "
                    f"{trigger!r}."
                )
            trigger = When(trigger)
        if to is not None:
            check_integer("SwitchPhase", "to", to, 0)
        self.trigger = trigger
        self.to = to
        self.switched_to: int | None = None

    # === What a switch is ===

    def check(self) -> None:
        """Raises ValueError unless the model can do what a switch asks of it."""
        if not hasattr(self.model, "set_phase"):
            raise ValueError(
                f"{type(self).__name__}: {type(self.model).__name__} has no phases, as "
                "an ObjectiveModel has."
            )

    def begin(self) -> int:
        """Lets the next phase begin; returns its number."""
        following = self._phase() + 1 if self.to is None else self.to
        self.model.set_phase(following)
        return following

    def keep(self, phase: int) -> None:
        """Undoes what brought the model back from before the switch.

        So may a recovery in the middle of an epoch.
        """
        if self._phase() < phase:
            self.model.set_phase(phase)

    def report(self, place: str) -> None:
        """Logs a switch."""
        _LOGGER.info("%s: phase %d begins.", place, self.switched_to)

    # === Hooks ===

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        self.check()

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if self.switched_to is not None:
            self.keep(self.switched_to)
        elif self.trigger.before_epoch(epoch):
            self._switch(f"Epoch {epoch + 1}")

    def on_train_batch_begin(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        if self.switched_to is not None:
            self.keep(self.switched_to)
        elif type(self.trigger).before_step is not Trigger.before_step:
            step = int(self.model.optimizer.iterations.numpy())
            if self.trigger.before_step(step):
                self._switch(f"Step {step}")

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if self.switched_to is None and self.trigger.after_epoch(
            epoch, logs or {}, self.model
        ):
            self._switch(f"After epoch {epoch + 1}")

    def _switch(self, place: str) -> None:
        self.switched_to = self.begin()
        self.report(place)

    def _phase(self) -> int:
        return int(self.model.phase.numpy())

    # === Checkpoints ===

    def get_state(self) -> dict[str, Any]:
        """Returns which phase has begun, the model's, and the trigger's state."""
        return {
            "switched_to": self.switched_to,
            "phase": self._phase(),
            "trigger": self.trigger.get_state(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Takes over what `get_state` returned, the model's phase included."""
        self.switched_to = state["switched_to"]
        self.model.set_phase(state["phase"])
        self.trigger.set_state(state["trigger"])
