"""The LSTM cell by itself."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.layers import LSTMCell


def test_added_forget_bias_equals_unit_forget_bias_of_keras(rng):
    cell = LSTMCell(3, bias_initializer="random_normal")
    keras_cell = keras.layers.LSTMCell(3)
    inputs = tf.constant(rng.normal(size=(2, 4)), tf.float32)
    states = [tf.constant(rng.normal(size=(2, 3)), tf.float32) for _ in range(2)]
    cell.build(inputs.shape)
    keras_cell.build(inputs.shape)
    kernel, recurrent_kernel, bias = cell.get_weights()
    bias[3:6] += 1.0
    keras_cell.set_weights([kernel, recurrent_kernel, bias])
    output, new_states = cell(inputs, states)
    expected, expected_states = keras_cell(inputs, states)
    np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-6)
    for state, other in zip(new_states, expected_states, strict=True):
        np.testing.assert_allclose(state, other, rtol=1e-5, atol=1e-6)


def test_initialisers_reach_their_weights():
    cell = LSTMCell(
        3,
        kernel_initializer=keras.initializers.Constant(2.0),
        recurrent_initializer=keras.initializers.Constant(3.0),
        bias_initializer=keras.initializers.Constant(4.0),
    )
    cell.build((None, 5))
    shapes = [(5, 12), (3, 12), (12,)]
    for weight, shape, value in zip(cell.get_weights(), shapes, [2, 3, 4], strict=True):
        np.testing.assert_array_equal(weight, np.full(shape, value))


def test_config_round_trip_keeps_everything():
    cell = LSTMCell(
        3,
        forget_bias=0.5,
        kernel_initializer="he_normal",
        recurrent_initializer="zeros",
        bias_initializer="ones",
    )
    copy = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(cell)
    )
    assert copy.get_config() == cell.get_config()
    assert copy.forget_bias == 0.5


def test_no_units_is_an_error():
    with pytest.raises(ValueError, match="`units` must be an integer >= 1, found 0"):
        LSTMCell(0)
