"""A language model at a temperature."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from rlm_tf.generation.stepwise import StepwiseModel
from rlm_tf.numerics import at_least_single


class TemperedStepwise:
    """The stepwise model `softmax(logits / temperature)`.

    Args:
        model: The stepwise model.
        temperature: Above 1 makes predictions flatter, below 1 sharper.

    Raises:
        ValueError: If the temperature is not positive.
    """

    def __init__(self, model: StepwiseModel, temperature: float) -> None:
        if not temperature > 0.0:
            raise ValueError(f"`temperature` must be positive, found {temperature}.")
        self.model = model
        self.temperature = float(temperature)
        self.vocabulary_size = getattr(model, "vocabulary_size", None)

    def zero_states(self, batch_size: int | tf.Tensor) -> Any:
        """Returns the states of the model."""
        return self.model.zero_states(batch_size)

    def forward(self, tokens: tf.Tensor, states: Any) -> tuple[tf.Tensor, Any]:
        """Reads int `[B, T]`; features are those of the model."""
        return self.model.forward(tokens, states)

    def output_logits(self, features: tf.Tensor) -> tf.Tensor:
        """Maps features `[..., F]` to logits `[..., V]`."""
        return at_least_single(self.model.output_logits(features)) / self.temperature
