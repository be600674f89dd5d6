"""What all averages of iterates have in common."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from rlm_tf.averaging.weight_sum import Weights, copies

LossFunction = Callable[[Weights], float]


class AveragedWeights(NamedTuple):
    """What an average proposes.

    Attributes:
        loss: The loss with these weights.
        weights: List of arrays.
        length: Number of iterates that they are the mean of; 1 for the last iterate.
    """

    loss: float
    weights: Weights
    length: int


class WeightAverage:
    """An average of the iterates theta_1, theta_2, ... of an optimiser.

    Weights are lists of arrays, NumPy's or TensorFlow's; sums are kept where they are.
    Call `start` with theta_0, `update` after every step of the optimiser, and now and
    then `evaluate`. Nothing here knows of models: the loss is a function of a list of
    arrays, of any kind (validation, training, a metric of a task), lower being better.
    A loss that is not a number counts as infinite.

    A subclass implements `add`, `proposal`, `get_state` and `set_state`; one that looks
    at losses overrides `evaluate`.

    Attributes:
        steps: Number t of updates so far.
    """

    # Whether what is averaged depends on the losses of evaluations.
    adapts = False

    def __init__(self) -> None:
        self.steps = 0

    def start(self, weights: Weights) -> None:
        """Takes note of theta_0; most averages ignore it."""

    def update(self, weights: Weights) -> None:
        """Takes note of the iterate after another step of the optimiser."""
        self.steps += 1
        self.add(weights)

    def add(self, weights: Weights) -> None:
        """Adds the iterate number `steps`."""
        raise NotImplementedError(f"{type(self).__name__} has no `add`.")

    def proposal(self, weights: Weights) -> tuple[Weights, int]:
        """Returns the average and the number of iterates in it.

        Args:
            weights: The present iterate, which is proposed where there is no average.
        """
        raise NotImplementedError(f"{type(self).__name__} has no `proposal`.")

    def evaluate(self, loss_fn: LossFunction, weights: Weights) -> AveragedWeights:
        """Returns what the average proposes, and its loss.

        Args:
            loss_fn: Maps a list of arrays to a loss.
            weights: The present iterate.

        Raises:
            ValueError: If there was no update.
        """
        self._check_updated()
        # What is returned must not change with the model.
        proposed, length = self.proposal(copies(weights))
        return AveragedWeights(loss_of(loss_fn, proposed), proposed, length)

    def get_state(self) -> dict[str, Any]:
        """Returns all that is remembered: JSON values and NumPy arrays."""
        return {"steps": self.steps}

    def set_state(self, state: dict[str, Any], on_device: bool = False) -> None:
        """Takes over what `get_state` returned.

        Args:
            state: What it returned.
            on_device: Whether sums become TensorFlow variables.
        """
        self.steps = state["steps"]

    def _check_updated(self) -> None:
        if not self.steps:
            raise ValueError(
                f"{type(self).__name__}.evaluate: there was no `update` yet."
            )


def loss_of(loss_fn: LossFunction, weights: Weights) -> float:
    """Returns the loss with weights; infinity if it is not a number."""
    loss = float(loss_fn(weights))
    return math.inf if math.isnan(loss) else loss
