"""The callback that averages weights by Two-Tailed Averaging."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from rlm_tf.averaging.averaging_callback import ModelLoss, WeightAveraging
from rlm_tf.averaging.two_tailed_average import TwoTailedAverage


class TwoTailedAveraging(WeightAveraging):
    """`WeightAveraging` with a `TwoTailedAverage`.

    An evaluation computes three losses: with the weights themselves, the short and the
    long average. `averaged` gives the long average, `best` the weights with the lowest
    loss that was reported.

    Args:
        loss: See `WeightAveraging`.
        patience: See `TwoTailedAverage`.
        extended: See `TwoTailedAverage`.
        reset: See `TwoTailedAverage`.
        **kwargs: `monitor`, `every_steps`, `on_device` and `name`, see
            `WeightAveraging`.
    """

    def __init__(
        self,
        loss: tf.data.Dataset | ModelLoss,
        *,
        patience: int = 3,
        extended: bool = True,
        reset: str = "switch",
        **kwargs: Any,
    ) -> None:
        average = TwoTailedAverage(patience, extended, reset=reset)
        super().__init__(average, loss, **kwargs)
