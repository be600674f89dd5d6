"""An LSTM in plain NumPy: one example, one gate and one unit at a time.

Gradients come from the complex step: the imaginary part of `f(x + i h)` over `h`, exact
to rounding for analytic functions, and nothing like back-propagation.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def run(
    x: np.ndarray,
    h: np.ndarray,
    c: np.ndarray,
    kernel: np.ndarray,
    recurrent_kernel: np.ndarray,
    bias: np.ndarray,
    forget_bias: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Maps `x` [B, T, D] and states [B, H] to outputs [B, T, H] and final states."""
    kernels = np.split(kernel, 4, axis=1)
    recurrent_kernels = np.split(recurrent_kernel, 4, axis=1)
    biases = np.split(bias, 4)
    outputs, finals = [], []
    for row in range(x.shape[0]):
        h_t, c_t = h[row], c[row]
        row_outputs = []
        for x_t in x[row]:
            i, f, g, o = (
                w.T @ x_t + u.T @ h_t + b
                for w, u, b in zip(kernels, recurrent_kernels, biases, strict=True)
            )
            c_t = sigmoid(f + forget_bias) * c_t + sigmoid(i) * np.tanh(g)
            h_t = sigmoid(o) * np.tanh(c_t)
            row_outputs.append(h_t)
        outputs.append(row_outputs)
        finals.append((h_t, c_t))
    return (
        np.array(outputs),
        np.array([h for h, _ in finals]),
        np.array([c for _, c in finals]),
    )


def complex_step_gradients(
    function: Callable[..., complex], arguments: list[np.ndarray]
) -> list[np.ndarray]:
    """Returns the gradient of a real analytic function for each of its arguments."""
    step = 1e-30
    gradients = []
    for position, argument in enumerate(arguments):
        gradient = np.zeros_like(argument)
        for index in np.ndindex(argument.shape):
            changed = argument.astype(complex)
            changed[index] += 1j * step
            value = function(*arguments[:position], changed, *arguments[position + 1 :])
            gradient[index] = np.imag(value) / step
        gradients.append(gradient)
    return gradients
