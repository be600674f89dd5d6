"""A cell that uses every freedom, and how loops are run and compared."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from rlm_tf.layers import Recurrent, RecurrentCell

B, T, D, H = 3, 5, 2, 4


@keras.saving.register_keras_serializable("test")
class OddCell(RecurrentCell):
    """Uses every freedom that the protocol gives.

    A low-rank product, a matrix used twice, a product of something other than a state,
    a product whose result is dropped, a weight used element by element, an unused
    weight, an output that is no state, a state that does not depend on the inputs.
    """

    def __init__(self, units: int, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.state_size = [units, units, 1]
        self.output_size = units + 1

    def build(self, input_shape):
        units = self.units
        shapes = {
            "mix": (input_shape[-1], units),
            "square": (units, units),
            "down": (units, 2),
            "up": (2, units),
            "scale": (units,),
            "unused": (3, 3),
        }
        self.matrices = {
            name: self.add_weight(
                shape=shape, initializer=keras.initializers.RandomNormal(), name=name
            )
            for name, shape in shapes.items()
        }
        self.built = True

    def loop_weights(self):
        return {k: tf.convert_to_tensor(w) for k, w in self.matrices.items()}

    def step(self, inputs_t, states, weights, product):
        a, b, counter = states
        product(a, weights["square"])
        x = tf.tanh(product(inputs_t, weights["mix"]) + b)
        low = product(product(a * x, weights["down"]), weights["up"])
        a = tf.sigmoid(low * weights["scale"]) + product(x, weights["square"])
        b = tf.tanh(product(a, weights["square"])) * weights["scale"]
        counter = counter + 1.0
        return tf.concat([a * b, counter], axis=-1), [a, b, counter]


def run_with_gradients(layer, inputs, states, cell):
    """Returns outputs, final states and gradients for inputs, states and weights."""
    weights = [weight.value for weight in cell.trainable_weights]
    with tf.GradientTape() as tape:
        tape.watch([inputs, *states])
        outputs, final = layer(inputs, states)
        loss = tf.reduce_sum(tf.sin(3.0 * outputs))
        for index, state in enumerate(final):
            loss += tf.reduce_sum(tf.cos(state)) * (index + 2.0)
    gradients = tape.gradient(
        loss,
        [inputs, *states, *weights],
        unconnected_gradients=tf.UnconnectedGradients.ZERO,
    )
    return [outputs, *final, *gradients]


def keras_rnn(cell):
    rnn = keras.layers.RNN(
        cell, return_sequences=True, return_state=True, dtype=cell.dtype_policy
    )

    def layer(inputs, states):
        outputs, *final = rnn(inputs, initial_state=states)
        return outputs, final

    return layer


def random(rng, shape, dtype="float32"):
    return tf.constant(rng.normal(size=shape), dtype)


def assert_all_close(actual, expected, tolerance):
    assert len(actual) == len(expected)
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, e, rtol=tolerance, atol=tolerance)


def make(cell, dtype="float32", **kwargs):
    layer = Recurrent(cell, dtype=dtype, **kwargs)
    layer.build((None, None, D))
    return layer
