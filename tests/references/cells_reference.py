"""Recurrent cells in plain NumPy: one example, one gate at a time, no matrices joined.

Each cell maps `x` [D], a list of states and named weights to its new states, the first
of which is the output. Gates of concatenated kernels are cut out by hand.
"""

from __future__ import annotations

import numpy as np

Weights = dict[str, np.ndarray]
States = list[np.ndarray]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gate(w: Weights, index: int, units: int, x, h):
    """Returns the pre-activation of one gate of kernel, recurrent kernel and bias."""
    part = slice(index * units, (index + 1) * units)
    of_x = np.array([np.dot(x, column) for column in w["kernel"][:, part].T])
    of_h = np.array([np.dot(h, column) for column in w["recurrent_kernel"][:, part].T])
    return of_x + of_h + w["bias"][part]


def lstm(x, h, states: States, w: Weights, *, cap=False, tie=False, forget_bias=0.0):
    units = len(states[0])
    order = "fgo" if tie else "ifgo"
    at = {name: gate(w, order.index(name), units, x, h) for name in order}
    f = sigmoid(at["f"] + forget_bias)
    i = 1 - f if tie else sigmoid(at["i"])
    if cap:
        i = np.array([min(a, 1 - b) for a, b in zip(i, f, strict=True)])
    c = f * states[1] + i * np.tanh(at["g"])
    return [sigmoid(at["o"]) * np.tanh(c), c]


def rlstm(x, h, states: States, w: Weights, *, mask=1.0, forget_bias=0.0):
    units = len(states[0])

    def cut(matrix, index):
        return matrix[..., index * units : (index + 1) * units]

    i = sigmoid(
        x @ cut(w["kernel"], 0) + h @ cut(w["recurrent_kernel"], 0) + cut(w["bias"], 0)
    )
    j = np.tanh(
        x @ cut(w["kernel"], 1) + h @ cut(w["recurrent_kernel"], 1) + cut(w["bias"], 2)
    )
    f = sigmoid(
        (i * j) @ cut(w["gate_kernels"], 0)
        + h @ cut(w["recurrent_kernel"], 2)
        + cut(w["bias"], 1)
        + forget_bias
    )
    c = f * states[1] + np.where(i < 1 - f, i, 1 - f) * j
    o = sigmoid((c * mask) @ cut(w["gate_kernels"], 1) + cut(w["bias"], 3))
    return [o * np.tanh(c), c]


def mlstm(x, h, states: States, w: Weights):
    m = (w["input_factor"].T @ x) * (w["state_factor"].T @ h)
    return lstm(x, m, states, w)


def gru(x, h, states: States, w: Weights):
    units = len(states[0])
    of_x = np.split(x @ w["kernel"] + w["bias"][0], 3)
    of_h = np.split(h @ w["recurrent_kernel"] + w["bias"][1], 3)
    z, r = sigmoid(of_x[0] + of_h[0]), sigmoid(of_x[1] + of_h[1])
    candidate = np.tanh(of_x[2] + r * of_h[2])
    return [
        np.array(
            [z[u] * states[0][u] + (1 - z[u]) * candidate[u] for u in range(units)]
        )
    ]


def elman(x, h, states: States, w: Weights):
    return [np.tanh(x @ w["kernel"] + h @ w["recurrent_kernel"] + w["bias"])]


def mogrify(x, h, w: Weights, rounds: int, condition: str):
    """Returns the gated x and h, with all intermediate values kept in a table."""
    xs, hs = {-1: x}, {0: h}
    for i in range(1, rounds + 1):
        table, other = (xs, hs) if i % 2 else (hs, xs)
        seen = other[i - 1] if condition == "zigzag" else other[min(other)]
        logits = w.get(f"gate_{i}_bias", 0.0)
        if condition != "none":
            matrix = w.get(f"gate_{i}_kernel")
            if matrix is None:
                matrix = w[f"gate_{i}_left"] @ w[f"gate_{i}_right"]
            logits = logits + matrix.T @ seen
        table[i] = 2 * sigmoid(logits) * table[i - 2]
    return xs[max(xs)], hs[max(hs)]
