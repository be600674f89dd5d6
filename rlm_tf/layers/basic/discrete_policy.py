"""A policy over numbered states: a perceptron with one hidden layer."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_integer
from rlm_tf.typing import TensorLike


@keras.saving.register_keras_serializable("rlm_tf")
class DiscretePolicy(keras.layers.Layer):
    """`logits(s) = tanh(onehot(s) W + b) V + c`, weights uniform in +-1/sqrt(fan_in).

    That is PyTorch's initialisation of linear layers, biases included, which the
    published code relies on. The one-hot product is a row of W.

    Args:
        num_states: States, S.
        num_actions: Actions, A.
        hidden_units: Width of the hidden layer, H.
        seed: Of the initialisation.

    Call arguments:
        states: int, any shape `[...]`, in [0, S).

    Returns:
        Logits `[..., A]`.
    """

    def __init__(
        self,
        num_states: int,
        num_actions: int,
        hidden_units: int = 32,
        seed: int = 0,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        for name, value in (
            ("num_states", num_states),
            ("num_actions", num_actions),
            ("hidden_units", hidden_units),
        ):
            check_integer("DiscretePolicy", name, value, 1)
        self.num_states = num_states
        self.num_actions = num_actions
        self.hidden_units = hidden_units
        self.seed = seed
        initial = initial_weights(num_states, num_actions, hidden_units, seed)
        for name, array in initial.items():
            variable = self.add_weight(shape=array.shape, name=name)
            variable.assign(array)
            setattr(self, name, variable)
        self.built = True

    def call(self, states: TensorLike) -> tf.Tensor:
        weights = {
            name: tf.convert_to_tensor(getattr(self, name)) for name in WEIGHT_NAMES
        }
        weights["hidden_kernel"] = tf.gather(weights["hidden_kernel"], states)
        return logits_of(weights)

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        config.update(
            num_states=self.num_states,
            num_actions=self.num_actions,
            hidden_units=self.hidden_units,
            seed=self.seed,
        )
        return config


WEIGHT_NAMES = ("hidden_kernel", "hidden_bias", "output_kernel", "output_bias")


def logits_of(weights: dict[str, tf.Tensor]) -> tf.Tensor:
    """Returns logits for rows of the hidden kernel.

    Args:
        weights: `hidden_kernel` `[..., H]`, one row for each state; `hidden_bias`,
            `output_kernel` and `output_bias` in shapes that broadcast with it.
    """
    hidden = tf.tanh(weights["hidden_kernel"] + weights["hidden_bias"])
    return tf.matmul(hidden, weights["output_kernel"]) + weights["output_bias"]


def initial_weights(
    num_states: int, num_actions: int, hidden_units: int, seed: int
) -> dict[str, np.ndarray]:
    """Returns the initial weights of a seed, float32, by name."""
    rng = np.random.default_rng(seed)
    shapes = {
        "hidden_kernel": ((num_states, hidden_units), num_states),
        "hidden_bias": ((hidden_units,), num_states),
        "output_kernel": ((hidden_units, num_actions), hidden_units),
        "output_bias": ((num_actions,), hidden_units),
    }
    return {
        name: rng.uniform(-(fan_in**-0.5), fan_in**-0.5, shape).astype(np.float32)
        for name, (shape, fan_in) in shapes.items()
    }
