"""The long short-term memory cell."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from rlm_tf.checks import check_integer
from rlm_tf.layers.recurrent_cell import Product, RecurrentCell, States, Weights


@keras.saving.register_keras_serializable("rlm_tf")
class LSTMCell(RecurrentCell):
    """The standard LSTM (Hochreiter and Schmidhuber 1997, with forget gates).

        [i, f, g, o] = x_t W + h_tm1 U + b
        c_t = sigmoid(f + forget_bias) * c_tm1 + sigmoid(i) * tanh(g)
        h_t = sigmoid(o) * tanh(c_t)

    The gates are stored in the order i, f, g, o, so the three weights can be exchanged
    with those of `keras.layers.LSTM`. There the 1 of the forget gate sits in the bias
    (`unit_forget_bias`); here it is added in the activation and the bias starts as
    `bias_initializer` says, as in the recipe of Zaremba et al. (2014). The two are the
    same function; they differ only for regularisers of the bias.

    Args:
        units: Width H of the state and of the output.
        forget_bias: Added to the forget gate before its sigmoid.
        kernel_initializer: For W `[D, 4 H]`.
        recurrent_initializer: For U `[H, 4 H]`.
        bias_initializer: For b `[4 H]`.
        **kwargs: Of `keras.layers.Layer`.

    Raises:
        ValueError: If `units` is not positive.
    """

    def __init__(
        self,
        units: int,
        *,
        forget_bias: float = 1.0,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = "zeros",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_integer("LSTMCell", "units", units, 1)
        self.units = units
        self.forget_bias = forget_bias
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.recurrent_initializer = keras.initializers.get(recurrent_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.state_size = [units, units]
        self.output_size = units

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        self.kernel = self.add_weight(
            name="kernel",
            shape=(input_shape[-1], 4 * self.units),
            initializer=self.kernel_initializer,
        )
        self.recurrent_kernel = self.add_weight(
            name="recurrent_kernel",
            shape=(self.units, 4 * self.units),
            initializer=self.recurrent_initializer,
        )
        self.bias = self.add_weight(
            name="bias", shape=(4 * self.units,), initializer=self.bias_initializer
        )
        self.built = True

    def total_bias(self) -> tf.Tensor:
        """Returns the bias `[4 H]` with `forget_bias` added to the forget gate."""
        bias = tf.convert_to_tensor(self.bias)
        is_forget_gate = tf.one_hot(1, 4, dtype=bias.dtype)
        return bias + self.forget_bias * tf.repeat(is_forget_gate, self.units)

    # === Step ===

    def project_inputs(self, inputs: tf.Tensor) -> tf.Tensor:
        """Returns `inputs W + b`, shape `[..., 4 H]`."""
        kernel = tf.convert_to_tensor(self.kernel)
        shape = tf.shape(inputs)
        rows = tf.reshape(inputs, [-1, inputs.shape[-1]])
        projected = tf.nn.bias_add(tf.matmul(rows, kernel), self.total_bias())
        projected = tf.reshape(
            projected, tf.concat([shape[:-1], [4 * self.units]], axis=0)
        )
        projected.set_shape([*inputs.shape[:-1], 4 * self.units])
        return projected

    def loop_weights(self) -> Weights:
        return {"recurrent_kernel": tf.convert_to_tensor(self.recurrent_kernel)}

    def step(
        self,
        inputs_t: tf.Tensor,
        states: States,
        weights: Weights,
        product: Product,
    ) -> tuple[tf.Tensor, States]:
        h_tm1, c_tm1 = states
        gates = inputs_t + product(h_tm1, weights["recurrent_kernel"])
        i, f, g, o = tf.split(gates, 4, axis=-1)
        c_t = tf.sigmoid(f) * c_tm1 + tf.sigmoid(i) * tf.tanh(g)
        h_t = tf.sigmoid(o) * tf.tanh(c_t)
        return h_t, [h_t, c_t]

    # === Config ===

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "units": self.units,
            "forget_bias": self.forget_bias,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "recurrent_initializer": keras.initializers.serialize(
                self.recurrent_initializer
            ),
            "bias_initializer": keras.initializers.serialize(self.bias_initializer),
        }
