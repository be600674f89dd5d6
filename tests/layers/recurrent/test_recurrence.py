"""The fast loop against NumPy, against Keras, and in every way it may be called."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager.polymorphic_function import polymorphic_function

from rlm_tf.layers import LSTMCell, Recurrent
from rlm_tf.layers.recurrent.cudnn_lstm import cudnn_lstm
from rlm_tf.training.state_variables import state_variables
from tests.layers.recurrent.recurrence_fixtures import (
    B,
    D,
    H,
    OddCell,
    T,
    assert_all_close,
    keras_rnn,
    make,
    random,
    run_with_gradients,
)
from tests.references import lstm_reference

# === Values and gradients ===


@pytest.mark.parametrize("jit_loop", [False, True])
@pytest.mark.parametrize(("batch", "steps"), [(3, 5), (1, 1), (1, 4), (2, 1)])
def test_equals_numpy_reference(rng, jit_loop, batch, steps):
    cell = LSTMCell(
        H, forget_bias=0.7, bias_initializer="random_normal", dtype="float64"
    )
    layer = make(cell, "float64", jit_loop=jit_loop)
    inputs = random(rng, (batch, steps, D), "float64")
    states = [random(rng, (batch, H), "float64") for _ in range(2)]

    def loss(*arguments):
        outputs, h, c = lstm_reference.run(*arguments, forget_bias=0.7)
        return (
            np.sum(np.sin(3 * outputs)) + 2 * np.sum(np.cos(h)) + 3 * np.sum(np.cos(c))
        )

    arguments = [inputs, *states, *cell.get_weights()]
    arguments = [np.array(argument) for argument in arguments]
    expected = [
        *lstm_reference.run(*arguments, forget_bias=0.7),
        *lstm_reference.complex_step_gradients(loss, arguments),
    ]
    run = tf.function(lambda: run_with_gradients(layer, inputs, states, cell))
    assert_all_close(run(), expected, 1e-10)


@pytest.mark.parametrize("jit_loop", [False, True])
@pytest.mark.parametrize("cell_class", [LSTMCell, OddCell])
def test_equals_keras_rnn_of_the_same_cell(rng, cell_class, jit_loop):
    cell = cell_class(H, dtype="float64")
    layer = make(cell, "float64", jit_loop=jit_loop)
    inputs = random(rng, (B, T, D), "float64")
    states = [random(rng, (B, size), "float64") for size in cell.state_size]
    actual = run_with_gradients(layer, inputs, states, cell)
    expected = run_with_gradients(keras_rnn(cell), inputs, states, cell)
    assert_all_close(actual, expected, 1e-10)
    # The loss reaches every weight that is used, or the comparison shows nothing.
    names = [weight.name for weight in cell.trainable_weights]
    for name, gradient in zip(names, actual[-len(names) :], strict=True):
        assert bool(tf.reduce_any(gradient != 0)) == (name != "unused")


def test_equals_keras_lstm_layer(rng):
    cell = LSTMCell(H)
    layer = make(cell)
    lstm = keras.layers.LSTM(H, return_sequences=True, return_state=True)
    inputs = random(rng, (B, T, D))
    states = [random(rng, (B, H)) for _ in range(2)]
    lstm.build(inputs.shape)
    # Keras starts the forget gate's bias at one; here one is added to it.
    lstm.set_weights([*cell.get_weights()[:2], lstm.get_weights()[2]])

    def keras_layer(inputs, states):
        outputs, *final = lstm(inputs, initial_state=states)
        return outputs, final

    assert_all_close(
        run_with_gradients(layer, inputs, states, cell),
        run_with_gradients(keras_layer, inputs, states, lstm),
        1e-5,
    )


def test_way_to_cudnn_gives_the_same_numbers(rng):
    cell = LSTMCell(H, forget_bias=0.4, bias_initializer="random_normal")
    layer = make(cell)
    inputs = random(rng, (B, T, D))
    states = [random(rng, (B, H)) for _ in range(2)]
    expected = run_with_gradients(layer, inputs, states, cell)
    before = set(state_variables(keras.Sequential([layer])))
    layer._cudnn = cudnn_lstm(cell)
    assert len(layer.weights) == 3
    # Checkpoints of a GPU fit a CPU.
    assert set(state_variables(keras.Sequential([layer]))) == before
    assert_all_close(run_with_gradients(layer, inputs, states, cell), expected, 1e-5)


def test_initial_states_default_to_zero_and_time_may_come_first(rng):
    cell = LSTMCell(H)
    inputs = random(rng, (B, T, D))
    zeros = [tf.zeros([B, H])] * 2
    expected, expected_final = make(cell)(inputs, zeros)
    outputs, final = make(cell, time_major=True)(tf.transpose(inputs, [1, 0, 2]))
    assert_all_close([tf.transpose(outputs, [1, 0, 2])], [expected], 1e-6)
    assert_all_close(final, expected_final, 1e-6)


# === Ways of calling ===


@pytest.mark.slow
@pytest.mark.parametrize("jit_loop", [False, True])
@pytest.mark.parametrize("mode", ["function", "unknown sizes", "jit"])
def test_graphs_equal_eager(rng, mode, jit_loop):
    cell = OddCell(H)
    layer = make(cell, jit_loop=jit_loop)
    inputs = random(rng, (B, T, D))
    states = [random(rng, (B, size)) for size in cell.state_size]
    eager = make(cell, jit_loop=False)
    expected = run_with_gradients(eager, inputs, states, cell)
    signature = None
    if mode == "unknown sizes":
        signature = [
            tf.TensorSpec([None, None, D]),
            [tf.TensorSpec([None, size]) for size in cell.state_size],
        ]
    run = tf.function(
        lambda inputs, states: run_with_gradients(layer, inputs, states, cell),
        input_signature=signature,
        jit_compile=mode == "jit" or None,
    )
    assert_all_close(run(inputs, states), expected, 1e-5)


@pytest.mark.parametrize("value", ["1", "0"])
def test_automatic_compilation_is_a_matter_of_the_environment(rng, monkeypatch, value):
    monkeypatch.setenv("RLM_JIT_LOOP", value)
    cell = LSTMCell(H)
    layer = make(cell)
    inputs = random(rng, (B, T, D))
    run = tf.function(lambda: layer(inputs)[0])
    assert_all_close([run()], [layer(inputs)[0]], 1e-6)
    library = run.get_concrete_function().graph.as_graph_def().library.function
    compiled = any(each.attr["_XlaMustCompile"].b for each in library)
    assert compiled == (value == "1")


def test_inside_a_while_loop(rng):
    cell = LSTMCell(H)
    layer = make(cell)
    inputs = random(rng, (B, 6, D))
    expected, _ = layer(inputs)

    @tf.function
    def run():
        states = cell.get_initial_state(B)
        outputs = tf.zeros([B, 2, H])
        for start in tf.range(0, 6, 2):
            window = tf.ensure_shape(inputs[:, start : start + 2], [B, 2, D])
            outputs, states = layer(window, states)
        return outputs

    assert_all_close([run()], [expected[:, -2:]], 1e-6)


def test_replicas_of_a_mirrored_strategy(rng, two_replicas):
    strategy = two_replicas
    with strategy.scope():
        cell = LSTMCell(H)
        layer = make(cell, jit_loop=False)
    inputs = random(rng, (B, T, D))
    states = [random(rng, (B, H)) for _ in range(2)]

    @tf.function
    def run():
        def replica():
            outputs, final = layer(inputs, states)
            return outputs, *final

        return strategy.run(replica)

    single = make(LSTMCell(H))
    single.set_weights(layer.get_weights())
    outputs, final = single(inputs, states)
    for replica in zip(
        *(strategy.experimental_local_results(value) for value in run()), strict=True
    ):
        assert_all_close(replica, [outputs, *final], 1e-6)


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_half_precision_is_close_to_single(rng, policy):
    cell = LSTMCell(H, dtype=policy)
    layer = make(cell, policy)
    single = make(LSTMCell(H))
    single.set_weights(layer.get_weights())
    inputs = random(rng, (B, T, D))
    states = [random(rng, (B, H)) for _ in range(2)]
    actual = run_with_gradients(layer, inputs, states, cell)
    assert actual[0].dtype.name == policy.removeprefix("mixed_")
    assert all(gradient.dtype == tf.float32 for gradient in actual[-3:])
    expected = run_with_gradients(single, inputs, states, single.cell)
    assert_all_close([tf.cast(a, tf.float32) for a in actual], expected, 0.15)


# === Mistakes ===


def test_second_derivatives_are_refused(rng):
    layer = make(LSTMCell(H))
    inputs = random(rng, (B, T, D))
    with tf.GradientTape() as outer:
        outer.watch(inputs)
        with tf.GradientTape() as inner:
            inner.watch(inputs)
            loss = tf.reduce_sum(layer(inputs)[0])
        first = inner.gradient(loss, inputs)
    with pytest.raises(NotImplementedError, match="second derivatives"):
        outer.gradient(first, inputs)


def test_product_with_another_matrix_is_refused(rng):
    class Stray(LSTMCell):
        def step(self, inputs_t, states, weights, product):
            product(states[0], tf.eye(H))
            return inputs_t[:, :H], states

    with pytest.raises(ValueError, match="one of the step's `weights` itself"):
        make(Stray(H))(random(rng, (B, T, D)))


def test_other_cells_and_options_are_refused():
    with pytest.raises(ValueError, match="found GRUCell"):
        Recurrent(keras.layers.GRUCell(3))
    with pytest.raises(ValueError, match="`jit_loop` must be"):
        Recurrent(LSTMCell(3), jit_loop="always")


def test_layer_survives_its_config(rng):
    cell = LSTMCell(H, forget_bias=0.3, kernel_initializer="he_normal")
    layer = make(cell, time_major=True, jit_loop=False)
    copy = Recurrent.from_config(layer.get_config())
    copy.build((None, None, D))
    copy.set_weights(layer.get_weights())
    assert copy.get_config() == layer.get_config()
    inputs = random(rng, (T, B, D))
    np.testing.assert_array_equal(copy(inputs)[0], layer(inputs)[0])


def test_one_trace_for_every_size_is_no_warning(monkeypatch):
    """TensorFlow warns of five traces in ten calls, of all loops together."""
    detectors = polymorphic_function._FrequentTracingDetectorManager()
    monkeypatch.setattr(
        polymorphic_function, "_frequent_tracing_detector_manager", detectors
    )
    warnings: list[str] = []
    monkeypatch.setattr(polymorphic_function.logging, "warning", warnings.append)
    layers = [Recurrent(LSTMCell(2), jit_loop=False) for _ in range(3)]
    for layer in layers:
        for steps in (1, 2):
            layer(tf.zeros([1, steps, 3]))
    assert not warnings
    # It would have told: this is what it counts.
    repeated = tf.function(lambda x: x)
    for size in range(1, 7):
        repeated(tf.zeros([size]))
    assert warnings
