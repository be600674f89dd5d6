"""The trigger of a phase that begins with averaging."""

from __future__ import annotations

from typing import Any

import keras

from rlm_tf.averaging.averaging_callback import WeightAveraging
from rlm_tf.averaging.tail_average import TailAverage
from rlm_tf.training.triggers import Trigger


class AveragingBegins(Trigger):
    """After the epoch before the first averaged step, as Phase II of BMI begins.

    Where the first averaged step is inside an epoch (a `latest` that is no whole number
    of epochs, triggers of `every_steps`), the phase begins at the end of that epoch.

        averaging = WeightAveraging(TriggeredAverage(5, rule="released"), valid)
        model.fit(..., callbacks=[averaging, SwitchPhase(AveragingBegins(averaging))])

    Args:
        averaging: The callback, which must stand before the one with this trigger.

    Raises:
        ValueError: If its average has no beginning.
    """

    def __init__(self, averaging: WeightAveraging) -> None:
        average = averaging.average
        if not isinstance(average, TailAverage):
            raise ValueError(
                "AveragingBegins: the average must have a beginning, such as "
                f"TriggeredAverage; found {type(average).__name__}."
            )
        self._average = average

    def after_epoch(self, epoch: int, logs: dict[str, Any], model: keras.Model) -> bool:
        return self._average.steps + 1 >= self._average.start_step
