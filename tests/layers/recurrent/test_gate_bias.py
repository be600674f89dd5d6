"""Biases that start forget gates differently."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from rlm_tf import layers


def test_chrono_draws_logarithms_of_uniform_numbers():
    bias = np.exp(layers.Chrono(20.0, seed=3)((20000,)))
    assert bias.min() >= 1 and bias.max() <= 19
    assert abs(bias.mean() - 10) < 5 * np.sqrt(18**2 / 12 / 20000)


def test_gate_bias_puts_the_forget_gate_in_its_place():
    ones = keras.initializers.Constant(1.0)
    np.testing.assert_array_equal(layers.GateBias(ones)((8,)), [0, 0, 1, 1, 0, 0, 0, 0])
    bias = layers.GateBias("random_normal", "random_normal", 0, 3, seed=4)
    first, second, third = np.split(np.asarray(bias((6,))), 3)
    assert np.any(first != second) and np.any(second != third)
    np.testing.assert_array_equal(bias((6,)), bias((6,)))


def test_chrono_may_start_the_input_gate_at_the_opposite():
    i, f, g, o = np.split(
        np.asarray(layers.GateBias(layers.Chrono(9.0), opposite_gate=0)((12,))), 4
    )
    np.testing.assert_array_equal(i, -f)
    assert f.min() >= 0 and f.max() > 0 and not g.any() and not o.any()


@pytest.mark.parametrize(
    "cell", [layers.LSTMCell, layers.RewiredLSTMCell, layers.MultiplicativeLSTMCell]
)
def test_a_gate_bias_says_all_about_the_forget_gate(cell):
    bias = layers.GateBias("ones")
    assert cell(4).forget_bias == 1.0
    assert cell(4, bias_initializer=bias).forget_bias == 0.0
    assert cell(4, forget_bias=1.0, bias_initializer=bias).forget_bias == 1.0


@pytest.mark.parametrize(
    ("make", "gates"),
    [
        (layers.LSTMCell, (1, 4)),
        (lambda units, **kw: layers.LSTMCell(units, tie_gates=True, **kw), (0, 3)),
        (layers.MultiplicativeLSTMCell, (1, 4)),
        (layers.RewiredLSTMCell, (1, 4)),
        (lambda units, **kw: layers.MogrifierLSTMCell(units, 2, 2, **kw), (1, 4)),
    ],
)
def test_the_bias_is_that_of_the_gate_that_forgets(make, gates):
    forget = keras.initializers.Constant(np.log(4.0))
    cell = make(3, bias_initializer=layers.GateBias(forget, "zeros", *gates))
    zeros, ones = np.zeros([1, 3], "float32"), np.ones([1, 3], "float32")
    _, states = cell(zeros, [zeros, ones])
    # Nothing is written, and sigmoid(ln 4) of it is kept.
    np.testing.assert_allclose(states[1], 0.8 * ones, rtol=1e-6)
    other = (gates[0] + 1, gates[1])
    wrong = make(3, bias_initializer=layers.GateBias(forget, "zeros", *other))
    with pytest.raises(ValueError, match=f"part {gates[0]} of {gates[1]} of the bias"):
        wrong(zeros, [zeros, ones])


@pytest.mark.parametrize("cell", [layers.ElmanCell, layers.GRUCell])
def test_cells_without_a_forget_gate_have_no_bias_for_it(cell):
    wrong = cell(4, bias_initializer=layers.GateBias("ones"))
    with pytest.raises(ValueError, match="no bias for the forget gate"):
        wrong(np.zeros([1, 4]), [np.zeros([1, 4])])
