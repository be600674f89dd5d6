"""Averages of all iterates, with exponential or with equal weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from rlm_tf.averaging.tail_average import TailAverage
from rlm_tf.averaging.weight_average import WeightAverage
from rlm_tf.averaging.weight_sum import (
    Weights,
    as_variables,
    check_like,
    copies,
    summable,
    to_numpy,
)
from rlm_tf.checks import check_range


class ExponentialAverage(WeightAverage):
    """Exponential moving average, EMA.

        a_0 = theta_0;    a_t = beta_t a_tm1 + (1 - beta_t) theta_t

    Without a call of `start`, theta_1 is taken for theta_0.

    Args:
        decay: beta in [0, 1), or a function of the step t = 1, 2, ... that returns it,
            `lambda t: min(0.999, (1 + t) / (10 + t))` for example.

    Raises:
        ValueError: If a decay is not in [0, 1).
    """

    def __init__(self, decay: float | Callable[[int], float]) -> None:
        super().__init__()
        self.decay = decay
        if not callable(decay):
            _check(decay)
        self._average: list[Any] = []

    def start(self, weights: Weights) -> None:
        self._average = summable(weights)

    def add(self, weights: Weights) -> None:
        if not self._average:
            self.start(weights)
        check_like(weights, self._average)
        decay = self.decay(self.steps) if callable(self.decay) else self.decay
        _check(decay)
        if isinstance(self._average[0], tf.Variable):
            tensors = [tf.convert_to_tensor(weight) for weight in weights]
            _move(self._average, tensors, tf.constant(1.0 - decay, tf.float64))
            return
        for average, weight in zip(self._average, weights, strict=True):
            average += (np.asarray(weight) - average) * (1.0 - decay)

    def proposal(self, weights: Weights) -> tuple[Weights, int]:
        if not self._average:
            return weights, 1
        return copies(self._average), self.steps

    def get_state(self) -> dict[str, Any]:
        return {**super().get_state(), "average": to_numpy(self._average)}

    def set_state(self, state: dict[str, Any], on_device: bool = False) -> None:
        super().set_state(state, on_device)
        average = state["average"]
        self._average = as_variables(average) if on_device else to_numpy(average)


class PolyakAverage(TailAverage):
    """Polyak-Ruppert averaging: the mean of all iterates, theta_0 included.

    Without a call of `start`, theta_0 is left out.
    """

    def __init__(self) -> None:
        super().__init__(start=1)

    def start(self, weights: Weights) -> None:
        self._sum.clear()
        self._sum.add(weights)


@tf.function(autograph=False, reduce_retracing=True)
def _move(
    averages: list[tf.Variable], weights: list[tf.Tensor], share: tf.Tensor
) -> None:
    for average, weight in zip(averages, weights, strict=True):
        change = tf.cast(weight, average.dtype) - average
        average.assign_add(change * tf.cast(share, average.dtype))


def _check(decay: float) -> None:
    check_range("ExponentialAverage", 0.0, 1.0, decay=decay)
    if decay == 1:
        raise ValueError(
            f"ExponentialAverage: `decay` must lie in [0, 1), found {decay}."
        )
