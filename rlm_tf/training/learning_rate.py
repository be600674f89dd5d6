"""Reading and setting the learning rates of a compiled model.

With a `DecoupledOptimizer` every part of the model has one. "The" learning rate is that
of the first part; setting it keeps the ratios of the others to it.
"""

from __future__ import annotations

import keras

from rlm_tf.optimizers.decoupled_optimizer import single_optimizers


def get_learning_rate(model: keras.Model) -> float:
    """Returns the learning rate, or what its schedule gives for the next step."""
    return float(keras.ops.convert_to_tensor(model.optimizer.learning_rate).numpy())


def get_learning_rates(model: keras.Model) -> dict[str, float]:
    """Returns the learning rates by part; that of a plain optimiser is of part ""."""
    return {
        part: float(keras.ops.convert_to_tensor(optimizer.learning_rate).numpy())
        for part, optimizer in single_optimizers(model.optimizer).items()
    }


def set_learning_rate(model: keras.Model, value: float) -> None:
    """Sets the learning rate."""
    model.optimizer.learning_rate = value


def check_settable(model: keras.Model, owner: str) -> None:
    """Checks that every learning rate is a number, hence can be set.

    Raises:
        ValueError: If one is a schedule; the message starts with `owner`.
    """
    for part, optimizer in single_optimizers(model.optimizer).items():
        if not isinstance(optimizer.learning_rate, keras.Variable):
            name = f"optimiser of `{part}`" if part else "optimiser"
            raise ValueError(
                f"{owner} sets the learning rate, so the {name} needs a number; it has "
                "a schedule."
            )
