"""Adam of rows against loops, and against Keras where every row is read."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.optimizers import RowAdam

_OPTIONS = {"learning_rate": 0.1, "beta_1": 0.8, "beta_2": 0.9, "epsilon": 1e-3}


def _slices(rng, places, width=3):
    values = rng.normal(size=(len(places), width)).astype(np.float32)
    return tf.IndexedSlices(tf.constant(values), tf.constant(places), (5, width))


def test_steps_by_loops():
    rng = np.random.default_rng(0)
    start = rng.normal(size=(5, 3)).astype(np.float32)
    table = keras.Variable(start)
    optimizer = RowAdam(**_OPTIONS)
    optimizer.build([table])
    expected, m, v = start.astype(float), np.zeros((5, 3)), np.zeros((5, 3))
    for t, places in enumerate(([1, 3, 1], [3], [0, 1]), start=1):
        gradient = _slices(rng, places)
        optimizer.apply([gradient], [table])
        for row in set(places):
            g = gradient.values.numpy()[np.array(places) == row].sum(axis=0)
            m[row] += 0.2 * (g - m[row])
            v[row] += 0.1 * (g**2 - v[row])
            rate = 0.1 * np.sqrt(1 - 0.9**t) / (1 - 0.8**t)
            expected[row] -= rate * m[row] / (np.sqrt(v[row]) + 1e-3)
        np.testing.assert_allclose(table, expected, rtol=2e-5)
    np.testing.assert_array_equal(table[4], start[4])
    assert int(optimizer.iterations) == 3


@pytest.mark.parametrize("as_rows", [True, False])
def test_where_all_is_read_it_is_adam(as_rows):
    rng = np.random.default_rng(1)
    start = rng.normal(size=(5, 3)).astype(np.float32)
    tables = [keras.Variable(start), keras.Variable(start)]
    optimizers = [RowAdam(**_OPTIONS), keras.optimizers.Adam(**_OPTIONS)]
    for _ in range(4):
        rows = _slices(rng, [0, 1, 2, 3, 4])
        given = rows if as_rows else tf.convert_to_tensor(rows)
        optimizers[0].apply([given], [tables[0]])
        optimizers[1].apply([tf.convert_to_tensor(rows)], [tables[1]])
    np.testing.assert_allclose(tables[0], tables[1], rtol=1e-5)


def test_a_model_is_trained_by_it():
    model = keras.Sequential(
        [
            keras.layers.Embedding(50, 4),
            keras.layers.GlobalAveragePooling1D(),
            keras.layers.Dense(2),
        ]
    )
    model.build((None, 3))
    before = model.layers[0].get_weights()[0]
    tokens = np.array([[1, 2, 3], [4, 5, 6]] * 8)
    model.compile(
        RowAdam(0.05), keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    )
    history = model.fit(tokens, np.array([0, 1] * 8), epochs=15, verbose=0).history
    assert history["loss"][-1] < 0.5 * history["loss"][0]
    after = model.layers[0].get_weights()[0]
    changed = (before != after).any(axis=1)
    assert np.flatnonzero(changed).tolist() == [1, 2, 3, 4, 5, 6]


def test_mistakes():
    with pytest.raises(ValueError, match="no `amsgrad` of rows"):
        RowAdam(amsgrad=True)
