"""The long short-term memory cell."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from rlm_tf.layers.recurrent.gate_bias import forget_bias_beside
from rlm_tf.layers.recurrent.hidden_state_cell import KernelCell
from rlm_tf.layers.recurrent.recurrent_cell import Product, States, Weights


@keras.saving.register_keras_serializable("rlm_tf")
class LSTMCell(KernelCell):
    """The standard LSTM (Hochreiter and Schmidhuber 1997, with forget gates).

        [i, f, g, o] = x_t W + h_tm1 U + b
        c_t = sigmoid(f + forget_bias) * c_tm1 + sigmoid(i) * tanh(g)
        h_t = sigmoid(o) * tanh(c_t)

    The gates are stored in the order i, f, g, o, so the three weights can be exchanged
    with those of `keras.layers.LSTM`. There the 1 of the forget gate sits in the bias
    (`unit_forget_bias`); here it is added in the activation and the bias starts as
    `bias_initializer` says, as in the recipe of Zaremba et al. (2014). The two are the
    same function; they differ only for regularisers of the bias. To put it into the
    bias, use a `GateBias`.

    Melis ("Towards Better Generative Models of Language", 2023) caps the input gate in
    all of his LSTMs,

        c_t = sigmoid(f) * c_tm1 + min(sigmoid(i), 1 - sigmoid(f)) * tanh(g),

    which keeps `|c_t| <= 1` where it started so. With tied gates the input gate is
    `1 - sigmoid(f)` and has no weights; the order is f, g, o.

    Args:
        units: Width H of the state and of the output.
        forget_bias: Added to the forget gate before its sigmoid; None: 1, or 0 where
            `bias_initializer` is a `GateBias`, which says all.
        cap_input_gate: Whether the input gate is limited as above.
        tie_gates: Whether the input gate is tied to the forget gate.
        state_dropout: Rate of state dropout, see `HiddenStateCell`.
        weight_drop: Rate of weight drop, likewise.
        kernel_initializer: For W `[D, 4 H]`.
        recurrent_initializer: For U `[H, 4 H]`.
        bias_initializer: For b `[4 H]`.
        seed: Of state dropout.
        **kwargs: Of `keras.layers.Layer`.

    Raises:
        ValueError: If `units` is not positive, the rate is not in [0, 1), or the input
            gate is both capped and tied.
    """

    def __init__(
        self,
        units: int,
        *,
        forget_bias: float | None = None,
        cap_input_gate: bool = False,
        tie_gates: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(units, **kwargs)
        if cap_input_gate and tie_gates:
            raise ValueError(
                f"{type(self).__name__}: `cap_input_gate` and `tie_gates` exclude each "
                "other: a tied input gate is at its cap."
            )
        self.forget_bias = forget_bias_beside(forget_bias, self.bias_initializer)
        self.cap_input_gate = cap_input_gate
        self.tie_gates = tie_gates
        self.state_size = [units, units]

    @property
    def num_gates(self) -> int:
        """Number of blocks of `units` columns of each kernel."""
        return 3 if self.tie_gates else 4

    @property
    def forget_gate(self) -> tuple[int, int]:
        return (0, 3) if self.tie_gates else (1, 4)

    @property
    def is_standard(self) -> bool:
        """Whether it computes what `keras.layers.LSTM` computes."""
        dropped = self.state_dropout > 0 or self.weight_drop > 0
        changed = self.cap_input_gate or self.tie_gates or dropped
        return type(self) is LSTMCell and not changed

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        width = self.num_gates * self.units
        self.add_kernels(input_shape[-1], width, width, (width,))
        self.built = True

    def total_bias(self) -> tf.Tensor:
        """Returns the bias `[4 H]` with `forget_bias` added to the forget gate."""
        bias = tf.convert_to_tensor(self.bias)
        is_forget_gate = tf.one_hot(*self.forget_gate, dtype=bias.dtype)
        return bias + self.forget_bias * tf.repeat(is_forget_gate, self.units)

    # === Step ===

    def input_weights(self) -> Weights:
        return {**super().input_weights(), "bias": self.total_bias()}

    def transition(
        self,
        projected_t: tf.Tensor,
        h_tm1: tf.Tensor,
        states: States,
        weights: Weights,
        product: Product,
    ) -> tuple[tf.Tensor, States]:
        gates = projected_t + product(h_tm1, weights["recurrent_kernel"])
        *i, f, g, o = tf.split(gates, self.num_gates, axis=-1)
        f = tf.sigmoid(f)
        c_t = f * states[1] + self._input_gate(i, f) * tf.tanh(g)
        h_t = tf.sigmoid(o) * tf.tanh(c_t)
        return h_t, [h_t, c_t]

    def _input_gate(self, i: list[tf.Tensor], f: tf.Tensor) -> tf.Tensor:
        if self.tie_gates:
            return 1.0 - f
        gate = tf.sigmoid(i[0])
        return tf.minimum(gate, 1.0 - f) if self.cap_input_gate else gate

    # === Config ===

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "forget_bias": self.forget_bias,
            "cap_input_gate": self.cap_input_gate,
            "tie_gates": self.tie_gates,
        }
