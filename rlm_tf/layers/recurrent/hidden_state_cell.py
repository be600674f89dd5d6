"""Cells whose output is their first state, which may be dropped out and mogrified."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

# Keras has no public name for it; `keras.layers.RNN` draws the masks of cells that
# derive from it once for all time steps.
from keras.src.layers.rnn.dropout_rnn_cell import DropoutRNNCell

from rlm_tf.checks import check_integer
from rlm_tf.layers.basic.replica_dropout import replica_dropout
from rlm_tf.layers.basic.replica_noise import replica_noise
from rlm_tf.layers.recurrent.gate_bias import GateBias
from rlm_tf.layers.recurrent.recurrent_cell import (
    Product,
    RecurrentCell,
    States,
    Weights,
)
from rlm_tf.numerics import cast_like

STATE_MASK = "state_mask"


class HiddenStateCell(RecurrentCell, DropoutRNNCell):
    """A cell with an affine map of its inputs and a hidden state h that is its output.

    State dropout (Gal and Ghahramani 2016) zeroes entries of h where the cell reads it,
    with one mask a sequence: the same at every time step of a call. The state that is
    passed on is not masked.

    Weight drop (Merity et al. 2018) zeroes entries of the matrices that multiply states
    instead, one mask a call, which all rows and time steps share; biases and what
    multiplies inputs stay whole. It acts in `rlm_tf.layers.Recurrent`.

    A subclass sets `state_size` and `output_size`, creates its weights in `build`, and
    implements

    * `input_weights()`: name -> tensor, what `project` needs;
    * `project(inputs, weights, product)`: what inputs `[N, D]` contribute, `[N, P]`;
    * `recurrent_weights()`: name -> tensor, what `transition` needs;
    * `transition(projected_t, h_tm1, states, weights, product)`: the new output and
      states. `h_tm1` is the hidden state as it is to be read, masked (or mogrified),
      while `states[0]` is the one that was passed on.

    Args:
        units: Width H of the output.
        state_dropout: Rate of state dropout, in [0, 1).
        weight_drop: Rate of weight drop, in [0, 1).
        seed: Of both.
        **kwargs: Of `keras.layers.Layer`.

    Raises:
        ValueError: If `units` is not positive or a rate is not in [0, 1).
    """

    # Names of the matrices among `recurrent_weights` that weight drop acts on.
    recurrent_matrices: tuple[str, ...] = ("recurrent_kernel",)

    def __init__(
        self,
        units: int,
        *,
        state_dropout: float = 0.0,
        weight_drop: float = 0.0,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        name = type(self).__name__
        check_integer(name, "units", units, 1)
        for rate, value in (
            ("state_dropout", state_dropout),
            ("weight_drop", weight_drop),
        ):
            if isinstance(value, str) or not 0 <= value < 1:
                raise ValueError(f"{name}: `{rate}` must lie in [0, 1), found {value}.")
        self.units = units
        self.state_dropout = state_dropout
        self.weight_drop = weight_drop
        self.seed = seed
        self.output_size = units
        # What Keras' mixin reads.
        self.dropout = 0.0
        self.recurrent_dropout = state_dropout
        if state_dropout > 0:
            self.seed_generator = keras.random.SeedGenerator(seed)
        if weight_drop > 0:
            self.weight_seed_generator = keras.random.SeedGenerator(seed)

    # === What a subclass implements ===

    def input_weights(self) -> Weights:
        """Returns the tensors that `project` uses, in the compute dtype."""
        raise NotImplementedError(f"{type(self).__name__} has no `input_weights`.")

    def project(
        self, inputs: tf.Tensor, weights: Weights, product: Product
    ) -> tf.Tensor:
        """Maps inputs `[N, D]` to what `transition` takes, `[N, P]`."""
        raise NotImplementedError(f"{type(self).__name__} has no `project`.")

    def recurrent_weights(self) -> Weights:
        """Returns the tensors that `transition` uses, in the compute dtype."""
        raise NotImplementedError(f"{type(self).__name__} has no `recurrent_weights`.")

    def transition(
        self,
        projected_t: tf.Tensor,
        h_tm1: tf.Tensor,
        states: States,
        weights: Weights,
        product: Product,
    ) -> tuple[tf.Tensor, States]:
        """Returns the output `[B, H]` and the new states."""
        raise NotImplementedError(f"{type(self).__name__} has no `transition`.")

    # === Step ===

    def project_inputs(self, inputs: tf.Tensor) -> tf.Tensor:
        rows = tf.reshape(inputs, [-1, inputs.shape[-1]])
        projected = self.project(rows, self.input_weights(), tf.matmul)
        width = projected.shape[-1]
        projected = tf.reshape(
            projected, tf.concat([tf.shape(inputs)[:-1], [width]], axis=0)
        )
        projected.set_shape([*inputs.shape[:-1], width])
        return projected

    def loop_weights(self) -> Weights:
        return self.recurrent_weights()

    def step(
        self,
        inputs_t: tf.Tensor,
        states: States,
        weights: Weights,
        product: Product,
    ) -> tuple[tf.Tensor, States]:
        h_tm1 = masked(states[0], weights)
        return self.transition(inputs_t, h_tm1, states, weights, product)

    def call(
        self, inputs: tf.Tensor, states: States, training: bool = False
    ) -> tuple[tf.Tensor, States]:
        if training and self.weight_drop > 0:
            raise ValueError(
                f"{type(self).__name__}: `weight_drop` has one mask for all time steps "
                "and acts in rlm_tf.layers.Recurrent, not in keras.layers.RNN."
            )
        weights = self.loop_weights()
        if training and self.recurrent_dropout > 0:
            weights[STATE_MASK] = self.get_recurrent_dropout_mask(states[0])
        return self.step(self.project_inputs(inputs), list(states), weights, tf.matmul)

    def dropout_masks(self, states: States) -> Weights:
        if self.recurrent_dropout == 0:
            return {}
        mask = self._create_dropout_mask(states[0], self.recurrent_dropout)
        return {STATE_MASK: mask}

    def drop_weights(self, weights: Weights) -> Weights:
        if self.weight_drop == 0:
            return weights
        # One draw, so that matrices of one shape lose other entries.
        sizes = [weights[name].shape.num_elements() for name in self.recurrent_matrices]
        draw = tf.random.stateless_uniform
        noise = replica_noise(draw, [sum(sizes)], self.weight_seed_generator, None)
        dropped = {}
        for name, part in zip(
            self.recurrent_matrices, tf.split(noise, sizes), strict=True
        ):
            matrix = weights[name]
            kept = tf.reshape(part, matrix.shape) >= self.weight_drop
            scaled = matrix * cast_like(1.0 / (1.0 - self.weight_drop), matrix)
            dropped[name] = tf.where(kept, scaled, tf.zeros_like(matrix))
        return weights | dropped

    def _create_dropout_mask(self, step_input: tf.Tensor, dropout_rate: float) -> Any:
        """Draws a mask of the shape of `step_input`; Keras' mixin calls it, too."""
        return replica_dropout(
            tf.ones_like(step_input), dropout_rate, self.seed_generator
        )

    # === Config ===

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "units": self.units,
            "state_dropout": self.state_dropout,
            "weight_drop": self.weight_drop,
            "seed": self.seed,
        }


class KernelCell(HiddenStateCell):
    """A cell with a kernel for its inputs, one for its state, and a bias.

    A subclass calls `add_kernels` in `build`.

    Args:
        units: Width H of the output.
        kernel_initializer: Of what multiplies inputs.
        recurrent_initializer: Of what multiplies states.
        bias_initializer: Of biases.
        **kwargs: Of `HiddenStateCell`.
    """

    def __init__(
        self,
        units: int,
        *,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = "zeros",
        **kwargs: Any,
    ) -> None:
        super().__init__(units, **kwargs)
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.recurrent_initializer = keras.initializers.get(recurrent_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)

    @property
    def forget_gate(self) -> tuple[int, int] | None:
        """Which of how many equal parts of the bias is the forget gate's, if any."""
        return None

    def add_kernels(
        self,
        input_width: int | None,
        kernel_width: int,
        recurrent_width: int,
        bias_shape: tuple[int, ...],
    ) -> None:
        """Creates `kernel`, `recurrent_kernel` and `bias`."""
        self.kernel = self.add_weight(
            name="kernel",
            shape=(input_width, kernel_width),
            initializer=self.kernel_initializer,
        )
        self._check_gate_bias()
        self.recurrent_kernel = self.add_weight(
            name="recurrent_kernel",
            shape=(self.units, recurrent_width),
            initializer=self.recurrent_initializer,
        )
        self.bias = self.add_weight(
            name="bias", shape=bias_shape, initializer=self.bias_initializer
        )

    def _check_gate_bias(self) -> None:
        """Raises ValueError if a `GateBias` is of other gates than the cell's."""
        bias = self.bias_initializer
        if not isinstance(bias, GateBias):
            return
        name = type(self).__name__
        if self.forget_gate is None:
            raise ValueError(
                f"{name}: the cell has no bias for the forget gate of a `GateBias`."
            )
        found = (bias.forget_gate, bias.num_gates)
        if found != self.forget_gate:
            raise ValueError(
                f"{name}: the forget gate is part {self.forget_gate[0]} of "
                f"{self.forget_gate[1]} of the bias; the `GateBias` has "
                f"forget_gate={found[0]}, num_gates={found[1]}."
            )

    def input_weights(self) -> Weights:
        return {
            "kernel": tf.convert_to_tensor(self.kernel),
            "bias": tf.convert_to_tensor(self.bias),
        }

    def project(
        self, inputs: tf.Tensor, weights: Weights, product: Product
    ) -> tf.Tensor:
        return tf.nn.bias_add(product(inputs, weights["kernel"]), weights["bias"])

    def recurrent_weights(self) -> Weights:
        return {"recurrent_kernel": tf.convert_to_tensor(self.recurrent_kernel)}

    def get_config(self) -> dict[str, Any]:
        initializers = {
            name: keras.initializers.serialize(getattr(self, name))
            for name in (
                "kernel_initializer",
                "recurrent_initializer",
                "bias_initializer",
            )
        }
        return {**super().get_config(), **initializers}


def masked(state: tf.Tensor, weights: Weights) -> tf.Tensor:
    """Returns a state times the mask among `weights`, if there is one."""
    mask = weights.get(STATE_MASK)
    return state if mask is None else state * tf.stop_gradient(mask)
