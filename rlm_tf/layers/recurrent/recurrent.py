"""The Keras layer that runs a cell over time in the fast loop."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from rlm_tf.layers.recurrent.cudnn_lstm import RunLSTM, cudnn_lstm
from rlm_tf.layers.recurrent.lstm_cell import LSTMCell
from rlm_tf.layers.recurrent.recurrence import Recurrence
from rlm_tf.layers.recurrent.recurrent_cell import RecurrentCell, States
from rlm_tf.nested_config import NestedConfig


@keras.saving.register_keras_serializable("rlm_tf")
class Recurrent(NestedConfig, keras.layers.Layer):
    """Runs a `RecurrentCell` over time; returns all outputs and the final states.

    It computes what `keras.layers.RNN(cell, return_sequences=True, return_state=True)`
    computes, faster: the input projection is one product for all time steps, and so is
    each weight gradient (see `rlm_tf.layers.recurrent.recurrence`). When TensorFlow
    sees a GPU and the cell is a standard `LSTMCell`, the loop is left to
    `keras.layers.LSTM`, which uses cuDNN there. Unlike Keras' layer it knows no masks
    of padding and does not run backwards (so it is not for
    `keras.layers.Bidirectional`); there, cells of this library run in
    `keras.layers.RNN`.

    Args:
        cell: The cell.
        time_major: Whether inputs and outputs are `[T, B, ...]`, not `[B, T, ...]`.
        jit_loop: Whether XLA compiles the loop; `"auto"`: in graphs, when batch size
            and number of steps are known while they are traced.
        **kwargs: Of `keras.layers.Layer`.

    Raises:
        ValueError: If the cell does not follow the protocol of `RecurrentCell`, or
            `jit_loop` is none of True, False, "auto".
    """

    def __init__(
        self,
        cell: RecurrentCell,
        *,
        time_major: bool = False,
        jit_loop: bool | str = "auto",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if not isinstance(cell, RecurrentCell):
            raise ValueError(
                "Recurrent: `cell` must be an rlm_tf.layers.RecurrentCell, found "
                f"{type(cell).__name__}; other cells run in keras.layers.RNN."
            )
        if jit_loop not in (True, False, "auto"):
            raise ValueError(
                'Recurrent: `jit_loop` must be True, False or "auto", found '
                f"{jit_loop!r}."
            )
        self.cell = cell
        self.time_major = time_major
        self.jit_loop = jit_loop
        self._recurrence = Recurrence(cell.step, jit_loop)
        self._cudnn: RunLSTM | None = None

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        if not self.cell.built:
            self.cell.build((None, input_shape[-1]))
        standard = isinstance(self.cell, LSTMCell) and self.cell.is_standard
        if standard and tf.config.list_logical_devices("GPU"):
            self._cudnn = cudnn_lstm(self.cell)
        self.built = True

    @property
    def uses_cudnn(self) -> bool:
        """Whether Keras' LSTM, which knows cuDNN, runs the cell."""
        return self._cudnn is not None

    def use_own_loop(self) -> None:
        """Runs the cell in the library's loop also where there is a GPU."""
        self._cudnn = None

    def call(
        self,
        inputs: tf.Tensor,
        initial_states: States | None = None,
        training: bool = False,
        copies: int = 1,
    ) -> tuple[tf.Tensor, States]:
        """Runs the cell over time.

        Args:
            inputs: `[B, T, D]`, or `[T, B, D]` if `time_major`; T >= 1.
            initial_states: One `[B, S]` for each state of the cell; None means zeros.
            training: Whether the cell's state dropout acts.
            copies: Every so many rows that follow each other share a mask of state
                dropout, such as samples of one sentence.

        Returns:
            Outputs `[B, T, H]` (or `[T, B, H]`) and the list of final states.
        """
        if inputs.shape.rank != 3:
            raise ValueError(
                "Recurrent: inputs must be [B, T, D] (or [T, B, D]), found shape "
                f"{tuple(inputs.shape)}."
            )
        batch_axis = 1 if self.time_major else 0
        if initial_states is None:
            size = inputs.shape[batch_axis] or tf.shape(inputs)[batch_axis]
            initial_states = self.cell.get_initial_state(size)
        states = [tf.cast(state, self.compute_dtype) for state in initial_states]
        if not self.time_major:
            inputs = tf.transpose(inputs, [1, 0, 2])
        if self._cudnn is None:
            weights = self.cell.loop_weights()
            if training:
                weights = self.cell.drop_weights(weights)
                weights = weights | self._masks(states, copies)
            projected = self.cell.project_inputs(inputs)
            outputs, final = self._recurrence(projected, states, weights)
        else:
            outputs, final = self._cudnn(inputs, states)
        if not self.time_major:
            outputs = tf.transpose(outputs, [1, 0, 2])
        return outputs, final

    def _masks(self, states: States, copies: int) -> dict[str, tf.Tensor]:
        if copies == 1:
            return self.cell.dropout_masks(states)
        masks = self.cell.dropout_masks([state[::copies] for state in states])
        return {name: tf.repeat(mask, copies, axis=0) for name, mask in masks.items()}

    # === Config ===

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "cell": keras.saving.serialize_keras_object(self.cell),
            "time_major": self.time_major,
            "jit_loop": self.jit_loop,
        }
