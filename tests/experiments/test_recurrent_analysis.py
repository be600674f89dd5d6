"""Gates, frequencies and recovery of trained models."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from experiments.mogrifier_lm import analysis
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


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def outputs_and_gates(cell, xs):
    """The equations of an LSTM, with a Mogrifier's rounds before every step."""
    inner = getattr(cell, "cell", cell)
    kernel, recurrent, bias = (
        np.split(np.asarray(weight, np.float64), 4, axis=-1)
        for weight in (inner.kernel, inner.recurrent_kernel, inner.bias)
    )
    bias[1] = bias[1] + 1.0  # The forget bias.
    rounds = {weight.name: np.asarray(weight, np.float64) for weight in cell.weights}
    h = c = np.zeros(inner.units)
    outputs, seen = [], []
    for x in xs:
        h_in = h
        for r in range(1, getattr(cell, "rounds", 0) + 1):
            left, right, b = (
                rounds[f"gate_{r}_{part}"] for part in ("left", "right", "bias")
            )
            if r % 2:
                x = 2 * sigmoid(h_in @ left @ right + b) * x
            else:
                h_in = 2 * sigmoid(x @ left @ right + b) * h_in
        i, f, j, o = (
            x @ k + h_in @ w + b
            for k, w, b in zip(kernel, recurrent, bias, strict=True)
        )
        i, f, o = sigmoid(i), sigmoid(f), sigmoid(o)
        if inner.cap_input_gate:
            i = np.minimum(i, 1 - f)
        c = f * c + i * np.tanh(j)
        h = o * np.tanh(c)
        outputs.append(h)
        seen.append({"i": i, "f": f, "o": o})
    return np.array(outputs), seen


@pytest.mark.parametrize(
    ("cell", "connections"),
    [
        (LSTMCell(3), "skip"),
        (MogrifierLSTMCell(3, 3, 2, cap_input_gate=True), "stacked"),
        (LSTMCell(3, cap_input_gate=True), "residual"),
    ],
)
def test_gates_are_those_of_the_equations(cell, connections):
    model = RegularizedLanguageModel(
        V, cell, 3, connections=connections, jit_loop=False, seed=2
    )
    model(np.zeros((1, 1), np.int32))
    rng = np.random.default_rng(5)
    for weight in model.trainable_variables:
        weight.assign(rng.normal(size=weight.shape))
    tokens = np.array([1, 4, 2, 6, 0])
    x = model.embedding(tf.constant(tokens)).numpy().astype(np.float64)
    rows = analysis.gate_statistics(model, tokens)
    assert len(rows) == 3
    for number, (layer, row) in enumerate(
        zip(model.recurrent_layers, rows, strict=True)
    ):
        outputs, seen = outputs_and_gates(layer.cell, x)
        for name, (mean, variance) in row.items():
            values = np.array([gates[name] for gates in seen])
            np.testing.assert_allclose(mean, values.mean(), rtol=1e-4, err_msg=name)
            np.testing.assert_allclose(variance, values.var(), rtol=1e-4)
        x = x + outputs if connections == "residual" and number else outputs
