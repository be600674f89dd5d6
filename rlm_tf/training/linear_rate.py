"""A learning rate that rises in a line, falls in another, and can be lowered."""

from __future__ import annotations

from typing import Any

import keras

from rlm_tf.optimizers.linear_decay import LinearDecay
from rlm_tf.training.learning_rate import (
    check_settable,
    get_learning_rate,
    set_learning_rate,
)


class LinearRate(keras.callbacks.Callback):
    """Sets the rates of `LinearDecay` step by step, of all parts in proportion.

    The optimiser's rate at the beginning is the highest. As it is a number and no
    schedule, other callbacks may lower it on the way, such as
    `DivergenceGuard(recover=True)`: what is left of the line is lowered with it.

    Args:
        steps: Of training, of the optimiser.
        warm_up: Of these, while the rate rises.

    Raises:
        ValueError: If a number is out of range; when training begins, if the
            optimiser has a schedule.
    """

    def __init__(self, steps: int, warm_up: int = 0) -> None:
        super().__init__()
        self.line = LinearDecay(1.0, steps, warm_up)
        self._highest: float | None = None
        self._last: float | None = None

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        check_settable(self.model, type(self).__name__)

    def on_train_batch_begin(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        found = get_learning_rate(self.model)
        if self._highest is None or self._last is None:
            self._highest = found
        elif found != self._last:
            self._highest *= found / self._last
        step = int(keras.ops.convert_to_numpy(self.model.optimizer.iterations))
        # The last step has a rate; behind it rates of parts would lose their ratios.
        step = min(step, self.line.steps - 1)
        set_learning_rate(self.model, self._highest * float(self.line(step)))
        self._last = get_learning_rate(self.model)

    def get_state(self) -> dict[str, Any]:
        """Returns the highest rate, and the one that was set last."""
        return {"highest": self._highest, "last": self._last}

    def set_state(self, state: dict[str, Any]) -> None:
        """Takes over what `get_state` returned."""
        self._highest, self._last = state["highest"], state["last"]
