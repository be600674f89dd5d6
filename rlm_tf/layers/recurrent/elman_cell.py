"""The simple recurrent network of Elman."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from rlm_tf.layers.recurrent.hidden_state_cell import KernelCell
from rlm_tf.layers.recurrent.recurrent_cell import Product, States, Weights


@keras.saving.register_keras_serializable("rlm_tf")
class ElmanCell(KernelCell):
    """The simple recurrent network (Elman 1990), as `keras.layers.SimpleRNN` has it.

        h_t = tanh(x_t W + h_tm1 U + b)

    Args:
        units: Width H of the state and of the output.
        state_dropout: Rate of state dropout, see `HiddenStateCell`.
        kernel_initializer: For W `[D, H]`.
        recurrent_initializer: For U `[H, H]`.
        bias_initializer: For b `[H]`.
        seed: Of state dropout.
        **kwargs: Of `keras.layers.Layer`.

    Raises:
        ValueError: If `units` is not positive or the rate is not in [0, 1).
    """

    def __init__(self, units: int, **kwargs: Any) -> None:
        super().__init__(units, **kwargs)
        self.state_size = [units]

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        self.add_kernels(input_shape[-1], self.units, self.units, (self.units,))
        self.built = True

    def transition(
        self,
        projected_t: tf.Tensor,
        h_tm1: tf.Tensor,
        states: States,
        weights: Weights,
        product: Product,
    ) -> tuple[tf.Tensor, States]:
        del states
        h_t = tf.tanh(projected_t + product(h_tm1, weights["recurrent_kernel"]))
        return h_t, [h_t]
