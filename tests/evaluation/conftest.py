"""A small recurrent model and its predictions in float64."""

from __future__ import annotations

import numpy as np
import pytest

from rlm_tf.models import RecurrentLanguageModel

V = 9


@pytest.fixture(scope="module")
def model():
    return RecurrentLanguageModel(
        V, 5, 2, initializer_scale=0.9, dropout=0.5, seed=1, jit_loop=False
    )


@pytest.fixture(scope="module")
def predict(model):
    """Next-token probabilities of a prefix, from NumPy float64 LSTM arithmetic."""

    def sigmoid(x):
        return 1.0 / (1.0 + np.exp(-x))

    embeddings = np.asarray(model.embedding.embeddings, np.float64)
    layers = []
    for layer in model.recurrent_layers:
        cell = layer.cell
        layers.append(
            [
                np.asarray(w, np.float64)
                for w in (cell.kernel, cell.recurrent_kernel, cell.total_bias())
            ]
        )
    output = np.asarray(model.output_layer.kernel, np.float64)
    output_bias = np.asarray(model.output_layer.bias, np.float64)

    def next_probs(prefix: list[int]) -> np.ndarray:
        states = [(np.zeros(5), np.zeros(5)) for _ in layers]
        for token in prefix:
            x = embeddings[token]
            for i, (kernel, recurrent, bias) in enumerate(layers):
                h, c = states[i]
                gates = x @ kernel + h @ recurrent + bias
                i_gate, f_gate, candidate, o_gate = np.split(gates, 4)
                c = sigmoid(f_gate) * c + sigmoid(i_gate) * np.tanh(candidate)
                x = sigmoid(o_gate) * np.tanh(c)
                states[i] = (x, c)
        logits = output @ x + output_bias
        weights = np.exp(logits - logits.max())
        return weights / weights.sum()

    return next_probs
