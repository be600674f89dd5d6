"""The cells that are tested, each with its reference in NumPy."""

from __future__ import annotations

import keras
import numpy as np

from rlm_tf import layers
from tests.layers.recurrent.recurrence_fixtures import random
from tests.references import cells_reference

B, T, D, H = 3, 4, 2, 3
OPTIONS = {
    "kernel_initializer": keras.initializers.RandomNormal(stddev=0.7),
    "recurrent_initializer": keras.initializers.RandomNormal(stddev=0.7),
    "bias_initializer": keras.initializers.RandomNormal(stddev=0.7),
    "dtype": "float64",
}


def lstm(**options):
    return layers.LSTMCell(H, forget_bias=0.3, **options, **OPTIONS)


def of_lstm(**options):
    return lambda x, h, states, w, mask: cells_reference.lstm(
        x, h, states, w, forget_bias=0.3, **options
    )


def plain(function):
    return lambda x, h, states, w, mask: function(x, h, states, w)


def of_rlstm(x, h, states, w, mask):
    return cells_reference.rlstm(x, h, states, w, mask=mask, forget_bias=0.3)


def rlstm(**options):
    return layers.RewiredLSTMCell(H, forget_bias=0.3, **options, **OPTIONS)


# name -> (cell of some dropout rate, step of the reference)
BASES = {
    "lstm": (lambda **o: lstm(**o), of_lstm()),
    "capped": (lambda **o: lstm(cap_input_gate=True, **o), of_lstm(cap=True)),
    "tied": (lambda **o: lstm(tie_gates=True, **o), of_lstm(tie=True)),
    "rlstm": (rlstm, of_rlstm),
    "mlstm": (
        lambda **o: layers.MultiplicativeLSTMCell(H, forget_bias=0.0, **o, **OPTIONS),
        plain(cells_reference.mlstm),
    ),
    "gru": (
        lambda **o: layers.GRUCell(H, **o, **OPTIONS),
        plain(cells_reference.gru),
    ),
    "elman": (
        lambda **o: layers.ElmanCell(H, **o, **OPTIONS),
        plain(cells_reference.elman),
    ),
}
# name -> (base, arguments of the Mogrifier)
MOGRIFIERS = {
    "mogrifier": ("capped", {"rounds": 5, "rank": 2}),
    "full rank, no bias": ("lstm", {"rounds": 3, "use_gate_bias": False}),
    "no zigzag": ("lstm", {"rounds": 4, "rank": 1, "condition": "original"}),
    "scale only": ("lstm", {"rounds": 2, "condition": "none"}),
    "one round": ("tied", {"rounds": 1, "rank": -3}),
    "no round": ("lstm", {"rounds": 0}),
    "of rlstm": ("rlstm", {"rounds": 4, "rank": 2}),
    "of mlstm": ("mlstm", {"rounds": 2, "rank": 2}),
    "of gru": ("gru", {"rounds": 3, "rank": 2}),
    "of elman": ("elman", {"rounds": 5, "rank": 2}),
}
NAMES = [*BASES, *MOGRIFIERS]


def make_cell(name, **options):
    """Returns a built cell whose gates have biases other than zero."""
    if name in BASES:
        cell = BASES[name][0](**options)
    else:
        base, arguments = MOGRIFIERS[name]
        base = BASES[base][0](**options)
        cell = layers.MogrifierCell(base, seed=7, dtype="float64", **arguments)
    cell.build((None, D))
    rng = np.random.default_rng(11)
    for weight in cell.trainable_weights:
        if weight.name.startswith("gate_") and weight.name.endswith("bias"):
            weight.assign(rng.normal(size=weight.shape))
    return cell


def reference_step(name, cell):
    """Returns `(x, states, mask) -> states` in NumPy with the cell's weights."""
    weights = {weight.name: weight.numpy() for weight in cell.trainable_weights}
    if name in BASES:
        step = BASES[name][1]
        return lambda x, states, mask: step(x, states[0] * mask, states, weights, mask)
    base, arguments = MOGRIFIERS[name]
    step = BASES[base][1]
    condition = arguments.get("condition", "zigzag")

    def mogrified(x, states, mask):
        x, h = cells_reference.mogrify(
            x, states[0] * mask, weights, arguments["rounds"], condition
        )
        return step(x, h, states, weights, mask)

    return mogrified


def run_reference(name, cell, inputs, states, mask=None):
    """Maps [B, T, D] and states to outputs [B, T, H] and final states."""
    step = reference_step(name, cell)
    mask = np.ones([B, H]) if mask is None else np.asarray(mask)
    outputs, finals = [], []
    for row in range(B):
        now = [np.asarray(state[row]) for state in states]
        row_outputs = []
        for t in range(T):
            now = step(np.asarray(inputs[row, t]), now, mask[row])
            row_outputs.append(now[0])
        outputs.append(row_outputs)
        finals.append(now)
    return np.array(outputs), [np.array(s) for s in zip(*finals, strict=True)]


def given(rng, cell):
    """Returns inputs `[B, T, D]` and states."""
    inputs = random(rng, (B, T, D), "float64")
    return inputs, [random(rng, (B, size), "float64") for size in cell.state_size]
