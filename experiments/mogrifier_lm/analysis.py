"""What section 2.3.4 of Melis (2023) looks at: rare words, recovery, gates."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import tensorflow as tf

from rlm_tf import evaluation
from rlm_tf.data import Corpus
from rlm_tf.layers import LSTMCell, MogrifierCell
from rlm_tf.layers.recurrent.hidden_state_cell import HiddenStateCell
from rlm_tf.models import RegularizedLanguageModel

# Occurrences of a word in the training text: 1-9, 10-99, ...
_BINS = (10, 100, 1000, 10_000)


def analyse(
    model: RegularizedLanguageModel, corpus: Corpus, text: np.ndarray
) -> dict[str, Any]:
    """Returns the evidence on the validation text.

    Args:
        model: The trained language model.
        corpus: Its corpus.
        text: The training text it has seen.
    """
    eos = corpus.vocabulary.eos_id
    valid = np.asarray(corpus.valid)
    log_probs = evaluation.target_log_probs(model, valid, 20, 35, prefix=eos)
    counts = np.bincount(text, minlength=len(corpus.vocabulary))
    found: dict[str, Any] = {
        "by_frequency": by_frequency(-log_probs, counts[valid]),
        "recovery": recovery(-log_probs),
    }
    if all(_is_lstm(layer.cell) for layer in model.recurrent_layers):
        found["gates"] = gate_statistics(model, valid[:2000])
    return found


def by_frequency(losses: np.ndarray, counts: np.ndarray) -> list[dict[str, Any]]:
    """Returns mean losses of words by how often they are in the training text.

    Args:
        losses: Nats, `[N]`.
        counts: Occurrences of each target in the training text, `[N]`.
    """
    edges = [0, 1, *_BINS, np.inf]
    rows = []
    for low, high in itertools.pairwise(edges):
        inside = (counts >= low) & (counts < high)
        if inside.any():
            rows.append(
                {
                    "least": int(low),
                    "tokens": int(inside.sum()),
                    "nats": float(losses[inside].mean()),
                }
            )
    return rows


def recovery(losses: np.ndarray, share: float = 0.1) -> dict[str, float]:
    """Returns what the loss of a token is after a large loss, and otherwise.

    Krause et al. (2016) say of the mLSTM that having just suffered a large loss its
    next one is smaller; Melis et al. found no such difference for the Mogrifier.

    Args:
        losses: Nats, `[N]`, in the order of the text.
        share: The share of losses that count as large.
    """
    large = losses[:-1] >= np.quantile(losses[:-1], 1 - share)
    following = losses[1:]
    return {
        "after_large": float(following[large].mean()),
        "after_others": float(following[~large].mean()),
    }


def gate_statistics(
    model: RegularizedLanguageModel, tokens: np.ndarray
) -> list[dict[str, list[float]]]:
    """Returns mean and variance of the gates i, f and o of each LSTM layer.

    Args:
        model: A model of LSTM or Mogrifier LSTM cells.
        tokens: A text, read in one row from zero states.
    """
    x = model.embedding(tf.constant(tokens[np.newaxis]))
    result = []
    for layer in model.recurrent_layers:
        outputs, gates = _run(layer.cell, x)
        columns = {
            name: [float(gates[name].mean()), float(gates[name].var())]
            for name in ("i", "f", "o")
        }
        result.append(columns)
        # Dropout is off; stacked and skip connections feed outputs on.
        x = (
            x + outputs
            if model.connections == "residual" and len(result) > 1
            else outputs
        )
    return result


def _is_lstm(cell: HiddenStateCell) -> bool:
    inner = cell.cell if isinstance(cell, MogrifierCell) else cell
    return type(inner) is LSTMCell and not inner.tie_gates


def _run(
    cell: HiddenStateCell, x: tf.Tensor
) -> tuple[tf.Tensor, dict[str, np.ndarray]]:
    """Runs a cell step by step; returns its outputs and its gates `[T, H]`."""
    inner = cell.cell if isinstance(cell, MogrifierCell) else cell
    weights = {**inner.input_weights(), **cell.loop_weights()}

    def step(before: Any, inputs: tf.Tensor) -> tuple[tf.Tensor, Any, tf.Tensor]:
        parts: dict[str, tf.Tensor] = {}

        def product(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
            result = tf.matmul(a, b)
            for name in ("kernel", "recurrent_kernel"):
                if b is weights[name]:
                    parts[name] = result
            return result

        if not isinstance(cell, MogrifierCell) or not cell.rounds:
            inputs = inner.project(inputs, weights, product)
        output, states = cell.step(inputs, before[1], weights, product)
        logits = parts["kernel"] + parts["recurrent_kernel"] + weights["bias"]
        return output, states, tf.sigmoid(logits)

    states = cell.get_initial_state(1)
    nothing = tf.zeros([1, inner.units], x.dtype)
    first = (nothing, states, tf.tile(nothing, [1, 4]))
    scan = tf.function(tf.scan, autograph=False)
    outputs, _, gates = scan(step, tf.transpose(x, [1, 0, 2]), first)
    i, f, _, o = np.split(gates[:, 0].numpy(), 4, axis=1)
    if inner.cap_input_gate:
        i = np.minimum(i, 1 - f)
    return tf.transpose(outputs, [1, 0, 2]), {"i": i, "f": f, "o": o}
