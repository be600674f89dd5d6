"""Cells in layers of Keras: padding, both directions, stacks, states, files."""

from __future__ import annotations

import keras
import numpy as np
import pytest
from keras.src.saving import serialization_lib

from rlm_tf import layers
from rlm_tf.layers.recurrent.cell_copies import copy_cell
from rlm_tf.seeds import Seeds


def _masked_inputs():
    x = np.random.default_rng(3).normal(size=(2, 5, 3)).astype(np.float32)
    mask = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], bool)
    return x, mask


@pytest.mark.parametrize(
    "make",
    [
        lambda: layers.MogrifierLSTMCell(4, 3, 2, seed=1),
        lambda: layers.RewiredLSTMCell(4),
    ],
)
def test_padding_is_skipped_where_keras_runs_the_cell(make):
    x, mask = _masked_inputs()
    rnn = keras.layers.RNN(make())
    whole = rnn(x, mask=mask).numpy()
    np.testing.assert_allclose(whole[1], rnn(x[1:, :3]).numpy()[0], 1e-5, 1e-6)


def test_both_directions_stacked_stateful_and_saved(tmp_path):
    inputs = keras.Input(batch_shape=(2, 5, 3))
    cells = [layers.MogrifierLSTMCell(4, 3, 2), layers.RewiredLSTMCell(4)]
    hidden = keras.layers.Bidirectional(
        keras.layers.RNN(layers.MogrifierLSTMCell(4, 2), return_sequences=True)
    )(inputs)
    outputs = keras.layers.RNN(cells, stateful=True)(hidden)
    model = keras.Model(inputs, outputs)
    x, _ = _masked_inputs()
    first = model(x).numpy()
    assert np.abs(model(x).numpy() - first).max() > 1e-4
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(again(x).numpy(), first, rtol=1e-5)


def test_copies_of_a_cell_take_no_object_of_a_file_for_their_own():
    cell = layers.LSTMCell(4)
    wrong = keras.initializers.Zeros()
    policy = keras.DTypePolicy("float32")
    # As while a file is loaded that was written where `wrong` had these addresses.
    with serialization_lib.ObjectSharingScope():
        for owner in (cell, cell.kernel_initializer, cell.bias_initializer, policy):
            serialization_lib.record_object_after_deserialization(wrong, id(owner))
        copies = [copy_cell(cell, Seeds(1), policy) for _ in range(2)]
    for copy in copies:
        assert isinstance(copy, layers.LSTMCell) and copy is not cell
        assert type(copy.kernel_initializer) is type(cell.kernel_initializer)
        assert type(copy.bias_initializer) is type(cell.bias_initializer)
        assert copy.units == 4 and copy.dtype_policy.name == "float32"
