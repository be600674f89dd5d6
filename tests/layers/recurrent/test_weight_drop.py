"""Weight drop: one mask a call on every matrix that multiplies states."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf import layers

_CELLS = {
    "lstm": layers.LSTMCell,
    "gru": layers.GRUCell,
    "elman": layers.ElmanCell,
    "multiplicative": layers.MultiplicativeLSTMCell,
    "rewired": layers.RewiredLSTMCell,
    "mogrifier": lambda units, **options: layers.MogrifierLSTMCell(
        units, rounds=3, **options
    ),
}
_MATRICES = {
    "multiplicative": {"recurrent_kernel", "state_factor"},
    "rewired": {"recurrent_kernel", "forget_kernel", "output_kernel"},
}


def _layer(name, rate=0.4, **options):
    cell = _CELLS[name](4, weight_drop=rate, seed=3, dtype="float64", **options)
    layer = layers.Recurrent(cell, jit_loop=False, dtype="float64")
    layer.build((None, None, 3))
    return layer


@pytest.mark.parametrize("name", _CELLS)
def test_the_loop_runs_with_dropped_matrices(rng, name):
    """Training is evaluation with other matrices, scaled where they are kept."""
    layer = _layer(name)
    inputs = tf.constant(rng.normal(size=(2, 5, 3)))
    whole = layer.cell.loop_weights()
    dropped = layer.cell.drop_weights(whole)
    changed = {key for key in whole if dropped[key] is not whole[key]}
    assert changed == _MATRICES.get(name, {"recurrent_kernel"})
    for key in changed:
        kept = dropped[key] != 0
        np.testing.assert_allclose(
            dropped[key][kept], whole[key][kept] / 0.6, rtol=1e-12
        )
    # A layer with the seeds where they were when those matrices were drawn.
    again = _layer(name)
    again.set_weights(layer.get_weights())
    again.cell.drop_weights = lambda weights: dropped
    expected, expected_final = again(inputs, training=True)
    fresh = _layer(name)
    fresh.set_weights(layer.get_weights())
    outputs, final = fresh(inputs, training=True)
    np.testing.assert_allclose(outputs, expected, rtol=1e-12)
    for found, state in zip(final, expected_final, strict=True):
        np.testing.assert_allclose(found, state, rtol=1e-12)
    evaluated, _ = fresh(inputs, training=False)
    assert np.max(np.abs(evaluated - outputs)) > 1e-3
    # The next call drops others.
    other, _ = fresh(inputs, training=True)
    assert np.max(np.abs(other - outputs)) > 1e-6


def test_the_share_that_is_dropped(rng):
    cell = layers.LSTMCell(60, weight_drop=0.3, seed=1)
    cell.build((None, 5))
    weights = cell.loop_weights()
    shares = [
        np.mean(cell.drop_weights(weights)["recurrent_kernel"] == 0) for _ in range(4)
    ]
    error = np.sqrt(0.3 * 0.7 / (60 * 240 * 4))
    assert np.mean(shares) == pytest.approx(0.3, abs=4 * error)


def test_dropped_entries_get_no_gradient(rng):
    layer = _layer("lstm")
    inputs = tf.constant(rng.normal(size=(2, 5, 3)))
    kernel = layer.cell.recurrent_kernel
    with tf.GradientTape() as tape:
        outputs, _ = layer(inputs, training=True)
        loss = tf.reduce_sum(tf.sin(outputs))
    gradient = tape.gradient(loss, kernel.value).numpy()
    same = _layer("lstm")
    dropped = same.cell.drop_weights(same.cell.loop_weights())["recurrent_kernel"]
    np.testing.assert_array_equal(gradient == 0, dropped == 0)


def test_the_loop_of_keras_is_refused(rng):
    cell = layers.LSTMCell(4, weight_drop=0.4)
    run = keras.layers.RNN(cell)
    inputs = rng.normal(size=(2, 3, 3)).astype("float32")
    run(inputs)
    with pytest.raises(ValueError, match=r"acts in rlm_tf.layers.Recurrent"):
        run(inputs, training=True)


def test_settings():
    cell = layers.MogrifierLSTMCell(4, weight_drop=0.4)
    assert cell.cell.weight_drop == 0.4
    again = type(cell).from_config(cell.get_config())
    assert again.weight_drop == 0.4
    assert not layers.LSTMCell(4, weight_drop=0.4).is_standard
    with pytest.raises(ValueError, match=r"`weight_drop` must lie in \[0, 1\)"):
        layers.GRUCell(4, weight_drop=1.0)
    with pytest.raises(ValueError, match="give `weight_drop` to it"):
        layers.MogrifierCell(layers.GRUCell(4), weight_drop=0.4)
