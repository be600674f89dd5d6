"""What a metric says of itself: which way is better, and where it is logged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, TypeVar

import keras

# Private; a test watches it. `mode="auto"` of Keras' callbacks asks the metrics in such
# lists, and no others, for their direction.
from keras.src.trainers.compile_utils import MetricsList

Direction: TypeAlias = Literal["down", "up"]
AnyMetric = TypeVar("AnyMetric", bound=keras.metrics.Metric)


def declared(
    metric: AnyMetric,
    direction: Direction,
    *,
    only_training: bool = False,
    in_logs: bool = True,
) -> AnyMetric:
    """Returns the metric, which from now on knows more about itself.

    Args:
        metric: The metric.
        direction: Which way is better; what `mode="auto"` means in callbacks.
        only_training: Whether evaluation neither updates nor logs it.
        in_logs: Whether training logs it; its result can be read otherwise.
    """
    metric._direction = direction
    metric.only_training = only_training
    metric.in_logs = in_logs
    return metric


def with_direction(metric: AnyMetric, direction: Direction) -> AnyMetric:
    """Returns the metric, with this direction unless it has one."""
    if not hasattr(metric, "_direction"):
        metric._direction = direction
    return metric


def is_logged(metric: keras.metrics.Metric, training: bool) -> bool:
    """Returns whether a metric is in the logs of training, or of evaluation."""
    wanted = training or not getattr(metric, "only_training", False)
    return wanted and getattr(metric, "in_logs", True)


class Directions(MetricsList):
    """Shows Keras' callbacks metrics that belong to a model; has none of its own.

    Args:
        metrics: The model's metrics.
    """

    def __init__(self, metrics: Sequence[keras.metrics.Metric]) -> None:
        super().__init__(list(metrics), name="directions")

    @property
    def variables(self) -> list[Any]:
        """None: the metrics have theirs."""
        return []

    def update_state(self, *args: Any, **kwargs: Any) -> None:
        """Does nothing: the model updates its metrics."""

    def reset_state(self) -> None:
        """Does nothing: the model resets its metrics."""

    def result(self) -> dict[str, Any]:
        """Returns nothing: the model asks its metrics."""
        return {}
