"""The gated recurrent unit."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from rlm_tf.layers.recurrent.hidden_state_cell import KernelCell
from rlm_tf.layers.recurrent.recurrent_cell import Product, States, Weights


@keras.saving.register_keras_serializable("rlm_tf")
class GRUCell(KernelCell):
    """The gated recurrent unit (Cho et al. 2014), as `keras.layers.GRU` has it.

        [z, r, g] = x_t W + b,   [z', r', g'] = h_tm1 U + b'
        h_t = sigmoid(z + z') * h_tm1
              + (1 - sigmoid(z + z')) * tanh(g + sigmoid(r + r') * g')

    Of a masked or mogrified state only the products see the change: what the gate z
    carries over is the state itself, as the memory of an LSTM is.

    Args:
        units: Width H of the state and of the output.
        state_dropout: Rate of state dropout, see `HiddenStateCell`.
        kernel_initializer: For W `[D, 3 H]`.
        recurrent_initializer: For U `[H, 3 H]`.
        bias_initializer: For b and b' `[2, 3 H]`.
        seed: Of state dropout.
        **kwargs: Of `keras.layers.Layer`.

    Raises:
        ValueError: If `units` is not positive or the rate is not in [0, 1).
    """

    def __init__(self, units: int, **kwargs: Any) -> None:
        super().__init__(units, **kwargs)
        self.state_size = [units]

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        width = 3 * self.units
        self.add_kernels(input_shape[-1], width, width, (2, width))
        self.built = True

    # === Step ===

    def input_weights(self) -> Weights:
        return {
            "kernel": tf.convert_to_tensor(self.kernel),
            "bias": tf.convert_to_tensor(self.bias)[0],
        }

    def recurrent_weights(self) -> Weights:
        return {
            "recurrent_kernel": tf.convert_to_tensor(self.recurrent_kernel),
            "recurrent_bias": tf.convert_to_tensor(self.bias)[1],
        }

    def transition(
        self,
        projected_t: tf.Tensor,
        h_tm1: tf.Tensor,
        states: States,
        weights: Weights,
        product: Product,
    ) -> tuple[tf.Tensor, States]:
        of_state = product(h_tm1, weights["recurrent_kernel"])
        of_state = tf.split(of_state + weights["recurrent_bias"], 3, axis=-1)
        z, r, g = tf.split(projected_t, 3, axis=-1)
        z = tf.sigmoid(z + of_state[0])
        g = tf.tanh(g + tf.sigmoid(r + of_state[1]) * of_state[2])
        h_t = z * states[0] + (1.0 - z) * g
        return h_t, [h_t]
