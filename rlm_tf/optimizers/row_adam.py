"""Adam that moves only the rows of a table that a step has read."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf


@keras.saving.register_keras_serializable("rlm_tf")
class RowAdam(keras.optimizers.Adam):
    """Adam whose steps of embeddings touch the rows with a gradient alone.

    A gradient of rows comes of looking them up. Keras' Adam lets the moments of all
    rows decay, and so moves all of them, in each step: of a table of 65,000 x 64 that
    takes tens of times as long as this. Here moments of a row decay in the steps that
    read it, and its step is, with t the number of all steps,

        m = m + (1 - beta_1) (g - m),    v = v + (1 - beta_2) (g^2 - v)
        row = row - lr sqrt(1 - beta_2^t) / (1 - beta_1^t) m / (sqrt(v) + epsilon)

    Rows that a step reads several times have the sum of their gradients. Dense
    gradients are those of `keras.optimizers.Adam`, as are those of rows where the model
    adds a penalty to all weights (`l2`), which makes them dense.

    Args:
        **kwargs: Of `keras.optimizers.Adam`.

    Raises:
        ValueError: If `amsgrad` is asked for.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.amsgrad:
            raise ValueError("RowAdam: there is no `amsgrad` of rows.")

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        if not isinstance(gradient, tf.IndexedSlices):
            super().update_step(gradient, variable, learning_rate)
            return
        index = self._get_variable_index(variable)
        places, rows = tf.unique(gradient.indices)
        values = tf.math.unsorted_segment_sum(gradient.values, rows, tf.size(places))
        dtype = variable.dtype
        values = tf.cast(values, dtype)
        rate = tf.cast(learning_rate, dtype)
        step = tf.cast(tf.convert_to_tensor(self.iterations) + 1, dtype)
        beta_1, beta_2 = (tf.cast(b, dtype) for b in (self.beta_1, self.beta_2))
        rate *= tf.sqrt(1 - beta_2**step) / (1 - beta_1**step)
        first, second = self._momentums[index], self._velocities[index]
        m = self._moved(first, places, values, 1 - beta_1)
        v = self._moved(second, places, values**2, 1 - beta_2)
        change = rate * m / (tf.sqrt(v) + self.epsilon)
        _table(variable).scatter_sub(tf.IndexedSlices(change, places))

    def _moved(
        self, moment: Any, places: tf.Tensor, wanted: tf.Tensor, share: tf.Tensor
    ) -> tf.Tensor:
        """Moves rows of a moment by a share of the way; returns them."""
        table = _table(moment)
        rows = tf.gather(table, places)
        rows += share * (wanted - rows)
        table.scatter_update(tf.IndexedSlices(rows, places))
        return rows


def _table(variable: Any) -> tf.Variable:
    """Returns TensorFlow's variable, which trainers of Keras have already."""
    return variable.value if isinstance(variable, keras.Variable) else variable
