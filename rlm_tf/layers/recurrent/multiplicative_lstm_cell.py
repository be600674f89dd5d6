"""The multiplicative LSTM cell."""

from __future__ import annotations

import keras
import tensorflow as tf

from rlm_tf.layers.recurrent.lstm_cell import LSTMCell
from rlm_tf.layers.recurrent.recurrent_cell import Product, States, Weights


@keras.saving.register_keras_serializable("rlm_tf")
class MultiplicativeLSTMCell(LSTMCell):
    """The multiplicative LSTM, mLSTM (Krause et al. 2016, arXiv 1609.07959).

        m_t = (x_t W_mx) * (h_tm1 W_mh)
        h_t, c_t = LSTM(x_t, m_t, c_tm1)

    The formulation of Melis (2023, 2.3.2): no biases and no squashing in m.

    Arguments as `LSTMCell`; `kernel_initializer` is also for W_mx `[D, H]`, and
    `recurrent_initializer` for W_mh `[H, H]`.
    """

    recurrent_matrices = ("recurrent_kernel", "state_factor")

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        super().build(input_shape)
        self.input_factor = self.add_weight(
            name="input_factor",
            shape=(input_shape[-1], self.units),
            initializer=self.kernel_initializer,
        )
        self.state_factor = self.add_weight(
            name="state_factor",
            shape=(self.units, self.units),
            initializer=self.recurrent_initializer,
        )

    def input_weights(self) -> Weights:
        factor = tf.convert_to_tensor(self.input_factor)
        return {**super().input_weights(), "input_factor": factor}

    def project(
        self, inputs: tf.Tensor, weights: Weights, product: Product
    ) -> tf.Tensor:
        gates = super().project(inputs, weights, product)
        return tf.concat([gates, product(inputs, weights["input_factor"])], axis=-1)

    def recurrent_weights(self) -> Weights:
        factor = tf.convert_to_tensor(self.state_factor)
        return {**super().recurrent_weights(), "state_factor": factor}

    def transition(
        self,
        projected_t: tf.Tensor,
        h_tm1: tf.Tensor,
        states: States,
        weights: Weights,
        product: Product,
    ) -> tuple[tf.Tensor, States]:
        sizes = [self.num_gates * self.units, self.units]
        gates, of_inputs = tf.split(projected_t, sizes, axis=-1)
        m_t = of_inputs * product(h_tm1, weights["state_factor"])
        return super().transition(gates, m_t, states, weights, product)
