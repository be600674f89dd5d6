"""Averages of the iterates of an optimiser, and the callback that evaluates them."""

from rlm_tf.averaging.averaging_begins import AveragingBegins
from rlm_tf.averaging.averaging_callback import WeightAveraging
from rlm_tf.averaging.exponential_average import ExponentialAverage, PolyakAverage
from rlm_tf.averaging.proportional_tail import ProportionalTailAverage
from rlm_tf.averaging.tail_average import (
    StochasticWeightAverage,
    TailAverage,
    TriggeredAverage,
)
from rlm_tf.averaging.trigger import non_monotonic_trigger
from rlm_tf.averaging.two_tailed_average import TwoTailedAverage
from rlm_tf.averaging.two_tailed_averaging import TwoTailedAveraging
from rlm_tf.averaging.weight_average import AveragedWeights, WeightAverage

__all__ = [
    "AveragedWeights",
    "AveragingBegins",
    "ExponentialAverage",
    "PolyakAverage",
    "ProportionalTailAverage",
    "StochasticWeightAverage",
    "TailAverage",
    "TriggeredAverage",
    "TwoTailedAverage",
    "TwoTailedAveraging",
    "WeightAverage",
    "WeightAveraging",
    "non_monotonic_trigger",
]
