"""The way to cuDNN for the standard LSTM, through Keras."""

from __future__ import annotations

import keras
import tensorflow as tf

from rlm_tf.layers.lstm_cell import LSTMCell
from rlm_tf.layers.recurrent_cell import States


class CudnnLSTM:
    """Runs the weights of an `LSTMCell` through `keras.layers.LSTM`.

    Keras picks the cuDNN kernel where it is available and its own loop elsewhere. The
    numbers are tested on CPUs, where Keras uses its loop; that cuDNN is then used and
    is faster was never measured by the authors of this library.

    It is not a Keras layer, so that the cell stays the only owner of the weights.

    Args:
        cell: A built cell.
    """

    def __init__(self, cell: LSTMCell) -> None:
        self._cell = cell
        self._lstm = keras.layers.LSTM(
            cell.units,
            return_sequences=True,
            return_state=True,
            dtype=cell.dtype_policy,
        )
        self._lstm.build((None, None, cell.kernel.shape[0]))

    def __call__(self, inputs: tf.Tensor, states: States) -> tuple[tf.Tensor, States]:
        """Maps `[T, B, D]` and states to outputs `[T, B, H]` and final states."""
        cell = self._cell
        (outputs, *final), _ = self._lstm.stateless_call(
            [
                tf.convert_to_tensor(cell.kernel),
                tf.convert_to_tensor(cell.recurrent_kernel),
                cell.total_bias(),
            ],
            [variable.value for variable in self._lstm.non_trainable_variables],
            tf.transpose(inputs, [1, 0, 2]),
            initial_state=states,
        )
        return tf.transpose(outputs, [1, 0, 2]), final
