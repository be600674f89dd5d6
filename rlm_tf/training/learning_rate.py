"""Reading and setting the learning rate of a compiled model."""

from __future__ import annotations

import keras


def get_learning_rate(model: keras.Model) -> float:
    """Returns the learning rate, or what its schedule gives for the next step."""
    return float(keras.ops.convert_to_tensor(model.optimizer.learning_rate).numpy())


def set_learning_rate(model: keras.Model, value: float) -> None:
    """Sets the learning rate."""
    model.optimizer.learning_rate = value


def check_settable(model: keras.Model, owner: str) -> None:
    """Checks that the learning rate is a number, hence can be set.

    Raises:
        ValueError: If it is a schedule; the message starts with `owner`.
    """
    if not isinstance(model.optimizer.learning_rate, keras.Variable):
        raise ValueError(
            f"{owner} sets the learning rate, so the optimiser needs a number; it has "
            "a schedule."
        )
