"""The way to cuDNN for the standard LSTM, through Keras."""

from __future__ import annotations

from collections.abc import Callable

import keras
import tensorflow as tf

from rlm_tf.layers.recurrent.lstm_cell import LSTMCell
from rlm_tf.layers.recurrent.recurrent_cell import States

RunLSTM = Callable[[tf.Tensor, States], tuple[tf.Tensor, States]]


def cudnn_lstm(cell: LSTMCell) -> RunLSTM:
    """Returns a function that runs the weights of a cell through `keras.layers.LSTM`.

    Keras picks the cuDNN kernel where it is available and its own loop elsewhere. The
    numbers are tested on CPUs, where Keras uses its loop; that cuDNN is then used and
    is faster was never measured by the authors of this library.

    It is not a Keras layer, and hides Keras' layer in a closure, so that the cell stays
    the only owner of the weights and checkpoints move between CPU and GPU.

    Args:
        cell: A built cell.

    Returns:
        Maps `[T, B, D]` and states to outputs `[T, B, H]` and final states.
    """
    lstm = keras.layers.LSTM(
        cell.units, return_sequences=True, return_state=True, dtype=cell.dtype_policy
    )
    lstm.build((None, None, cell.kernel.shape[0]))

    def run(inputs: tf.Tensor, states: States) -> tuple[tf.Tensor, States]:
        (outputs, *final), _ = lstm.stateless_call(
            [
                tf.convert_to_tensor(cell.kernel),
                tf.convert_to_tensor(cell.recurrent_kernel),
                cell.total_bias(),
            ],
            [variable.value for variable in lstm.non_trainable_variables],
            tf.transpose(inputs, [1, 0, 2]),
            initial_state=states,
        )
        return tf.transpose(outputs, [1, 0, 2]), final

    return run
