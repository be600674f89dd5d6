"""The Rewired LSTM cell."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from rlm_tf.layers.recurrent.gate_bias import forget_bias_beside
from rlm_tf.layers.recurrent.hidden_state_cell import KernelCell, masked
from rlm_tf.layers.recurrent.recurrent_cell import Product, States, Weights


@keras.saving.register_keras_serializable("rlm_tf")
class RewiredLSTMCell(KernelCell):
    """The Rewired LSTM, RLSTM (Melis 2023, "Towards Better Generative Models", 4.3).

        [i, j] = x_t W + h_tm1 U_ij + b_ij
        u   = sigmoid(i) * tanh(j)
        f   = sigmoid(u W_u + h_tm1 U_f + b_f)
        c_t = f * c_tm1 + min(sigmoid(i), 1 - f) * tanh(j)
        o   = sigmoid(c_t W_o + b_o)
        h_t = o * tanh(c_t)

    The forget gate sees the inputs through the update u alone, the output gate nothing
    but the cell. State dropout masks h, and, with the same mask, the `c_t` that the
    output gate reads. With D = H it has 7 H^2 weights in matrices, an LSTM 8 H^2.

    Args:
        units: Width H of the states and of the output.
        forget_bias: Added to the forget gate before its sigmoid; None: 1, or 0 where
            `bias_initializer` is a `GateBias`, which says all.
        state_dropout: Rate of state dropout, see `HiddenStateCell`.
        kernel_initializer: For W `[D, 2 H]`.
        recurrent_initializer: For U `[H, 3 H]` (i, j, f), and for W_u and W_o side by
            side, `[H, 2 H]`.
        bias_initializer: For b `[4 H]`, in the order i, f, j, o as in `LSTMCell`.
        seed: Of state dropout.
        **kwargs: Of `keras.layers.Layer`.

    Raises:
        ValueError: If `units` is not positive or the rate is not in [0, 1).
    """

    recurrent_matrices = ("recurrent_kernel", "forget_kernel", "output_kernel")

    def __init__(
        self,
        units: int,
        *,
        forget_bias: float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(units, **kwargs)
        self.forget_bias = forget_bias_beside(forget_bias, self.bias_initializer)
        self.state_size = [units, units]

    @property
    def forget_gate(self) -> tuple[int, int]:
        return 1, 4

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        units = self.units
        self.add_kernels(input_shape[-1], 2 * units, 3 * units, (4 * units,))
        # One weight: an initialiser with a seed fills equal shapes with equal values.
        self.gate_kernels = self.add_weight(
            name="gate_kernels",
            shape=(units, 2 * units),
            initializer=self.recurrent_initializer,
        )
        self.built = True

    # === Step ===

    def input_weights(self) -> Weights:
        i, _, j, _ = tf.split(tf.convert_to_tensor(self.bias), 4)
        return {**super().input_weights(), "bias": tf.concat([i, j], axis=0)}

    def recurrent_weights(self) -> Weights:
        _, f, _, o = tf.split(tf.convert_to_tensor(self.bias), 4)
        forget_kernel, output_kernel = tf.split(
            tf.convert_to_tensor(self.gate_kernels), 2, axis=1
        )
        return {
            **super().recurrent_weights(),
            "forget_kernel": forget_kernel,
            "output_kernel": output_kernel,
            "forget_bias": f + self.forget_bias,
            "output_bias": o,
        }

    def transition(
        self,
        projected_t: tf.Tensor,
        h_tm1: tf.Tensor,
        states: States,
        weights: Weights,
        product: Product,
    ) -> tuple[tf.Tensor, States]:
        of_inputs = tf.split(projected_t, 2, axis=-1)
        of_state = tf.split(product(h_tm1, weights["recurrent_kernel"]), 3, axis=-1)
        i = tf.sigmoid(of_inputs[0] + of_state[0])
        j = tf.tanh(of_inputs[1] + of_state[1])
        f = product(i * j, weights["forget_kernel"]) + of_state[2]
        f = tf.sigmoid(f + weights["forget_bias"])
        c_t = f * states[1] + tf.minimum(i, 1.0 - f) * j
        o = product(masked(c_t, weights), weights["output_kernel"])
        h_t = tf.sigmoid(o + weights["output_bias"]) * tf.tanh(c_t)
        return h_t, [h_t, c_t]

    # === Config ===

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "forget_bias": self.forget_bias}
