"""Gates, frequencies and recovery of trained models."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from experiments.mogrifier import analysis
from rlm_tf.layers import LSTMCell, MogrifierLSTMCell
from rlm_tf.models import RegularizedLanguageModel

V = 7


def test_losses_are_sorted_by_frequency():
    losses = np.array([1.0, 2.0, 3.0, 5.0])
    rows = analysis.by_frequency(losses, np.array([0, 3, 9, 500]))
    assert rows == [
        {"least": 0, "tokens": 1, "nats": 1.0},
        {"least": 1, "tokens": 2, "nats": 2.5},
        {"least": 100, "tokens": 1, "nats": 5.0},
    ]


def test_recovery_compares_what_follows():
    losses = np.array([1.0, 9.0, 4.0, 1.0, 9.0, 2.0, 1.0, 1.0])
    found = analysis.recovery(losses, share=0.25)
    assert found["after_large"] == 3.0
    np.testing.assert_allclose(found["after_others"], np.mean([9, 1, 9, 1, 1]))


@pytest.mark.parametrize(
    "cell",
    [LSTMCell(3), MogrifierLSTMCell(3, 3, 2, cap_input_gate=True)],
)
def test_gates_are_those_of_the_model(cell):
    model = RegularizedLanguageModel(V, cell, 2, jit_loop=False, seed=2)
    tokens = np.array([1, 4, 2, 6, 0])
    rows = analysis.gate_statistics(model, tokens)
    assert len(rows) == 2
    x = model.embedding(tf.constant(tokens[None]))
    outputs, gates = analysis._run(model.recurrent_layers[0].cell, x)
    expected, _ = model.recurrent_layers[0](tf.transpose(x, [1, 0, 2]))
    np.testing.assert_allclose(outputs[0], expected[:, 0], rtol=1e-5, atol=1e-6)
    # The output gate is what is left of h where the cell is known.
    assert np.all((gates["o"] > 0) & (gates["o"] < 1))
    if cell.state_size and getattr(cell, "rounds", 0):
        assert np.all(gates["i"] <= 1 - gates["f"] + 1e-6)
    np.testing.assert_allclose(rows[0]["f"][0], gates["f"].mean(), rtol=1e-6)
