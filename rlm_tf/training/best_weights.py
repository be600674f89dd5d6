"""A copy of a model's weights at the best validation so far."""

from __future__ import annotations

import math
from typing import Any

import keras
import numpy as np

from rlm_tf.optimizers.decoupled_optimizer import single_optimizers
from rlm_tf.training.state_variables import fixed_weights


class BestWeights:
    """Keeps a copy of weights and optimiser slots, and the value they reached.

    Copied are the weights and what the optimiser keeps for each of them (momentum of
    other weights would mislead). Not copied: the learning rate and the scale of a
    loss-scaling optimiser, which go on; random and carried states, which belong to the
    position in the data; the weights of `frozen_models`, which do not change. The
    copy is in memory; a checkpoint of `ExactResume` keeps it as part of the state of
    the callback that owns it.

    Args:
        with_iterations: Whether the optimiser's number of iterations is copied, too. Of
            Adam's early second moments a late number takes too large steps; schedules
            and draws that follow the number go back with it.

    Attributes:
        value: The best value so far, infinity before the first.
        epoch: Epoch in which it was reached, from 0 as in Keras, or None.
    """

    def __init__(self, with_iterations: bool = False) -> None:
        self.with_iterations = with_iterations
        self.value = math.inf
        self.epoch: int | None = None
        self._arrays: list[np.ndarray] = []

    @property
    def available(self) -> bool:
        """Whether there is a copy."""
        return bool(self._arrays)

    def capture(self, model: keras.Model, value: float, epoch: int) -> None:
        """Copies the model's present weights, which reached `value` in `epoch`."""
        self.value = value
        self.epoch = epoch
        self._arrays = [np.array(v.value.numpy()) for v in self._variables(model)]

    def restore(self, model: keras.Model) -> None:
        """Puts the copy back into the model.

        Raises:
            ValueError: If there is no copy, or the model has other weights.
        """
        variables = self._variables(model)
        if len(variables) != len(self._arrays):
            raise ValueError(
                f"BestWeights.restore: the model has {len(variables)} weights and "
                f"optimiser slots, the copy has {len(self._arrays)}."
            )
        for variable, array in zip(variables, self._arrays, strict=True):
            variable.value.assign(array)

    def get_state(self) -> dict[str, Any]:
        """Returns the copy and its value, for a checkpoint."""
        return {"value": self.value, "epoch": self.epoch, "arrays": self._arrays}

    def set_state(self, state: dict[str, Any]) -> None:
        """Takes over what `get_state` returned."""
        self.value = state["value"]
        self.epoch = state["epoch"]
        self._arrays = list(state["arrays"])

    def _variables(self, model: keras.Model) -> list[keras.Variable]:
        optimizer = getattr(model.optimizer, "inner_optimizer", model.optimizer)
        goes_on = []
        for single in (optimizer, *single_optimizers(optimizer).values()):
            goes_on.append(single.learning_rate)
            if not self.with_iterations:
                # Where gradients are accumulated, the property is another number.
                goes_on.append(getattr(single, "_iterations", single.iterations))
        slots = [v for v in optimizer.variables if not any(v is g for g in goes_on)]
        fixed = {id(weight) for weight in fixed_weights(model)}
        return [*(v for v in model.weights if id(v) not in fixed), *slots]
