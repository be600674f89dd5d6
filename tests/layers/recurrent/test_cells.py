"""Every cell against NumPy, in Keras' loop and in ours, with and without dropout."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf import layers
from tests.layers.recurrent.cell_cases import NAMES, D, given, make_cell, run_reference
from tests.layers.recurrent.recurrence_fixtures import (
    assert_all_close,
    keras_rnn,
    make,
    random,
    run_with_gradients,
)

# === Values and gradients ===


@pytest.mark.parametrize("jit_loop", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_equals_numpy(rng, name, jit_loop):
    cell = make_cell(name)
    inputs, states = given(rng, cell)
    outputs, final = make(cell, "float64", jit_loop=jit_loop)(inputs, states)
    expected, expected_final = run_reference(name, cell, inputs, states)
    assert_all_close([outputs, *final], [expected, *expected_final], 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_loops_agree_in_values_and_gradients(rng, name):
    cell = make_cell(name)
    inputs, states = given(rng, cell)
    ours = run_with_gradients(make(cell, "float64"), inputs, states, cell)
    expected = run_with_gradients(keras_rnn(cell), inputs, states, cell)
    assert_all_close(ours, expected, 1e-10)
    for weight, gradient in zip(
        cell.trainable_weights, ours[-len(cell.trainable_weights) :], strict=True
    ):
        assert bool(tf.reduce_any(gradient != 0)), weight.name


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_gradients_equal_differences(rng, name):
    cell = make_cell(name)
    layer = make(cell, "float64")
    inputs, states = given(rng, cell)
    weights = [weight.value for weight in cell.trainable_weights]

    def loss():
        outputs, final = layer(inputs, states)
        return tf.reduce_sum(tf.sin(3.0 * outputs)) + tf.reduce_sum(final[-1] ** 2)

    with tf.GradientTape() as tape:
        value = loss()
    gradients = tape.gradient(value, weights)
    for weight, gradient in zip(weights, gradients, strict=True):
        direction = tf.constant(rng.normal(size=weight.shape))
        start = tf.identity(weight)
        weight.assign(start + 1e-6 * direction)
        above = loss()
        weight.assign(start - 1e-6 * direction)
        slope = (above - loss()) / 2e-6
        weight.assign(start)
        np.testing.assert_allclose(
            tf.reduce_sum(gradient * direction), slope, rtol=1e-5, atol=1e-7
        )


# === State dropout ===


@pytest.mark.parametrize("name", ["lstm", "rlstm", "gru", "mogrifier", "of rlstm"])
def test_one_mask_a_sequence_in_both_loops(rng, name):
    inputs, states = given(rng, make_cell(name))
    ours = make_cell(name, state_dropout=0.4, seed=5)
    theirs = make_cell(name, state_dropout=0.4, seed=5)
    theirs.set_weights(ours.get_weights())
    mask = make_cell(name, state_dropout=0.4, seed=5).dropout_masks(states)
    mask = mask["state_mask"].numpy()
    assert 0 < np.mean(mask == 0) < 1
    expected, expected_final = run_reference(name, ours, inputs, states, mask)
    layer = make(ours, "float64")
    outputs, final = layer(inputs, states, training=True)
    assert_all_close([outputs, *final], [expected, *expected_final], 1e-12)
    rnn = keras.layers.RNN(
        theirs, return_sequences=True, return_state=True, dtype="float64"
    )
    outputs, *final = rnn(inputs, initial_state=states, training=True)
    assert_all_close([outputs, *final], [expected, *expected_final], 1e-12)
    # Other masks in the next call, none in evaluation.
    again, _ = layer(inputs, states, training=True)
    assert np.any(again.numpy() != expected)
    quiet, _ = layer(inputs, states)
    assert_all_close([quiet], [run_reference(name, ours, inputs, states)[0]], 1e-12)


def test_gradients_under_state_dropout_agree(rng):
    results = []
    for loop in ("ours", "keras"):
        cell = make_cell("of rlstm", state_dropout=0.4, seed=5)
        inputs, states = given(np.random.default_rng(0), cell)
        layer = make(cell, "float64") if loop == "ours" else None
        if layer is None:
            rnn = keras.layers.RNN(
                cell, return_sequences=True, return_state=True, dtype="float64"
            )
        if results:
            cell.set_weights(results[0][1])
        with tf.GradientTape() as tape:
            if layer is not None:
                outputs, _ = layer(inputs, states, training=True)
            else:
                outputs, *_ = rnn(inputs, initial_state=states, training=True)
            loss = tf.reduce_sum(outputs**2)
        weights = [weight.value for weight in cell.trainable_weights]
        results.append((tape.gradient(loss, weights), cell.get_weights()))
    assert_all_close(results[0][0], results[1][0], 1e-10)


# === What the papers say of them ===


def test_capped_cells_stay_within_one(rng):
    cell = layers.LSTMCell(
        8, cap_input_gate=True, kernel_initializer=keras.initializers.RandomNormal(0, 5)
    )
    layer = make(cell)
    _, (_, c) = layer(random(rng, (4, 50, D)))
    assert np.max(np.abs(c)) <= 1.0


def test_gates_of_the_mogrifier_lie_in_their_ranges(rng):
    cell = layers.MogrifierLSTMCell(6, rounds=5, rank=3, dtype="float64")
    cell.build((None, 6))
    x = tf.constant(np.full((4, 6), 1.0))
    h = tf.constant(rng.normal(size=(4, 6)))
    for weight in cell.trainable_weights:
        weight.assign(10 * tf.random.normal(weight.shape, dtype=tf.float64))
    gated_x, gated_h = cell.mogrify(x, h, cell.loop_weights(), tf.matmul)
    assert np.all((gated_x >= 0) & (gated_x <= 2**3))
    ratio = gated_h / h
    assert np.all((ratio >= 0) & (ratio <= 2**2))
    assert np.max(gated_x) > 4


def test_rewired_cell_has_seven_squares_of_weights():
    cell = layers.RewiredLSTMCell(5)
    cell.build((None, 5))
    assert sum(w.numpy().size for w in cell.weights) == 7 * 25 + 4 * 5


def test_low_rank_factors_have_products_of_variance_one_over_inputs():
    cell = layers.MogrifierLSTMCell(400, rounds=2, rank=50, seed=3)
    cell.build((None, 300))
    weights = {weight.name: weight.numpy() for weight in cell.trainable_weights}
    # Truncation at two deviations takes 23 % of each factor's variance.
    shrunk = 0.774**2
    for i, seen in ((1, 400), (2, 300)):
        product = weights[f"gate_{i}_left"] @ weights[f"gate_{i}_right"]
        assert abs(product.var() * seen / shrunk - 1) < 0.05
    full = layers.MogrifierLSTMCell(400, rounds=1, seed=3)
    full.build((None, 300))
    kernel = full.trainable_weights[0].numpy()
    assert kernel.shape == (400, 300)
    assert abs(kernel.var() * 400 - 1) < 0.02


def test_every_round_has_values_of_its_own_and_seeds_repeat_them():
    def weights(seed):
        cell = layers.MogrifierLSTMCell(5, rounds=4, seed=seed)
        cell.build((None, 5))
        return {w.name: w.numpy() for w in cell.trainable_weights if "gate" in w.name}

    one, again, other = weights(1), weights(1), weights(2)
    np.testing.assert_array_equal(one["gate_3_kernel"], again["gate_3_kernel"])
    assert np.any(one["gate_3_kernel"] != one["gate_1_kernel"])
    assert np.any(one["gate_3_kernel"] != other["gate_3_kernel"])
    assert not one["gate_2_bias"].any()


# === Configs and mistakes ===


@pytest.mark.parametrize(
    ("make_it", "message"),
    [
        (lambda: layers.MogrifierLSTMCell(3, -1), "`rounds` must be an integer >= 0"),
        (lambda: layers.MogrifierLSTMCell(3, condition="x"), "`condition` must be one"),
        (
            lambda: layers.MogrifierLSTMCell(3, condition="none", use_gate_bias=False),
            "leaves gates their biases only",
        ),
        (
            lambda: layers.MogrifierCell(keras.layers.LSTMCell(3)),
            "must be an rlm_tf.layers.HiddenStateCell",
        ),
        (
            lambda: layers.LSTMCell(3, cap_input_gate=True, tie_gates=True),
            "exclude each other",
        ),
        (lambda: layers.GRUCell(3, state_dropout=1.0), r"must lie in \[0, 1\)"),
        (lambda: layers.Chrono(2.0), "`longest` must be above 2"),
        (lambda: layers.GateBias("ones", forget_gate=4), "below `num_gates`"),
        (lambda: layers.GateBias("ones", opposite_gate=1), "another part than"),
        (
            lambda: layers.MogrifierCell(layers.MogrifierLSTMCell(4)),
            "`cell` is mogrified already",
        ),
        (
            lambda: layers.MogrifierCell(layers.GRUCell(4), state_dropout=0.5),
            "dropout is that of the wrapped cell",
        ),
        (
            lambda: layers.MogrifierCell(layers.GRUCell(4), dtype="float64"),
            "must be that of the wrapped cell, float32, found float64",
        ),
        (
            lambda: layers.MogrifierCell(layers.GRUCell(4), rank=3.5),
            "`rank` must be an integer or None, found 3.5",
        ),
        (lambda: layers.GRUCell(4, state_dropout="x"), "must lie in"),
        (
            lambda: layers.Recurrent(layers.GRUCell(4))(np.zeros((2, 3), "float32")),
            r"inputs must be \[B, T, D\]",
        ),
        (lambda: layers.GateBias("ones")((7,)), "a vector of 4 equal parts"),
    ],
)
def test_mistakes_are_named(make_it, message):
    with pytest.raises(ValueError, match=message):
        make_it()
