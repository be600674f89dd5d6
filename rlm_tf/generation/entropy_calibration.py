"""Next-token probabilities corrected by how uncertain each token leaves the model."""

from __future__ import annotations

from typing import Any, NamedTuple

import keras
import numpy as np
import scipy.optimize
import tensorflow as tf

from rlm_tf.checks import check_integer, check_range, checked_tokens
from rlm_tf.generation.stepwise import StepwiseModel, as_stepwise
from rlm_tf.models.language.interface import interface_of
from rlm_tf.numerics import at_least_single, multiply_no_nan_log

# Rows of logits that are looked at together, unless there are more prefixes.
_MOST_ROWS = 4096
# Single precision rounds logits that are corrected by more to whole nats; 1e38 times an
# entropy is infinite.
MOST_CALIBRATION = 1e6
"""The largest strength of a calibration, either way."""


class CalibrationFit(NamedTuple):
    """What a calibration is worth on the text it was fitted on.

    Attributes:
        strength: a.
        nats_before: Nats a token without it.
        nats_after: With it; never more.
        num_tokens: Number of tokens scored.
    """

    strength: float
    nats_before: float
    nats_after: float
    num_tokens: int


def calibrate(
    logits: tf.Tensor,
    states: Any,
    model: StepwiseModel,
    strength: float | tf.Tensor,
    candidates: int,
) -> tf.Tensor:
    """Returns logits of `p(w) exp(-a H(next | w))` (Braverman et al. 2020).

    `H(next | w)` is the entropy in nats of the model's next prediction if w comes now:
    with a > 0, tokens after which the model would not know what to say become less
    likely, which keeps the entropy of long texts from rising (arXiv 1906.05664). To
    know it for every token takes as many steps of the model as there are tokens; here
    it is computed for the most probable ones, and the others get the candidates' mean,
    weighted by probability. With as many candidates as tokens it is exact.

    Args:
        logits: `[N, V]`.
        states: The states after the prefix, with which `logits` came.
        model: The model.
        strength: a, in [-1e6, 1e6].
        candidates: Number of most probable tokens that are looked beyond.

    Raises:
        ValueError: If a is a number and out of range.
    """
    check_range("calibrate", -MOST_CALIBRATION, MOST_CALIBRATION, strength=strength)
    entropies, ids, mean = _lookahead(logits, states, model, candidates)
    rows = tf.range(tf.shape(ids)[0])[:, tf.newaxis] + tf.zeros_like(ids)
    strength = tf.cast(strength, logits.dtype)
    others = tf.zeros_like(logits) + mean
    penalty = tf.tensor_scatter_nd_update(
        others, tf.stack([rows, ids], axis=-1), entropies
    )
    return logits - strength * penalty


def fit_calibration(
    model: keras.Model,
    tokens: np.ndarray,
    *,
    prefix: int,
    candidates: int = 64,
    context_length: int | None = None,
) -> CalibrationFit:
    """Finds the strength a with the lowest perplexity of a text.

    Nats a token are a convex function of a, which may be negative. Tune it on
    validation text; a few thousand tokens will do, each of which costs `candidates`
    steps of the model.

    Args:
        model: A recurrent language model, a wrapper around one, or any Keras model from
            tokens to logits.
        tokens: Integers `[T]`.
        prefix: The token before the first, `<eos>` as a rule.
        candidates: See `calibrate`.
        context_length: Most tokens that a model without states is run on.

    Raises:
        ValueError: If `tokens` is empty or no vector of ids of the model, or `prefix`
            is none.
    """
    check_integer("fit_calibration", "candidates", candidates, 1)
    size = interface_of(model).vocabulary_size or 2**31
    text = checked_tokens("fit_calibration", tokens, size)
    checked_tokens("fit_calibration", [prefix], size, "prefix")
    if not text.size:
        raise ValueError("fit_calibration: `tokens` is empty, expected T >= 1.")
    stepwise = as_stepwise(model, context_length)
    inputs = np.concatenate([[prefix], text[:-1]]).astype(np.int32)

    @tf.function(autograph=False, reduce_retracing=True)
    def step(token: tf.Tensor, target: tf.Tensor, states: Any) -> Any:
        features, states = stepwise.forward(token[tf.newaxis, tf.newaxis], states)
        logits = at_least_single(stepwise.output_logits(features)[:, 0])
        entropies, ids, mean = _lookahead(logits, states, stepwise, candidates)
        log_probs = tf.nn.log_softmax(logits)
        chosen = tf.gather(log_probs, ids, batch_dims=1)
        hit = tf.equal(ids, target)
        of_target = tf.where(
            tf.reduce_any(hit), tf.reduce_sum(tf.where(hit, entropies, 0)), mean[0, 0]
        )
        return (
            log_probs[0, target],
            chosen[0],
            entropies[0],
            mean[0, 0],
            of_target,
            states,
        )

    states = stepwise.zero_states(1)
    found: list[Any] = []
    for token, target in zip(inputs, text.astype(np.int32), strict=True):
        *numbers, states = step(tf.constant(token), tf.constant(target), states)
        found.append([number.numpy().astype(np.float64) for number in numbers])
    of_targets, chosen, entropies, means, target_entropies = (
        np.stack(column) for column in zip(*found, strict=True)
    )
    probs = np.exp(chosen)
    rest = np.maximum(1.0 - probs.sum(axis=1), 0.0)

    def nats(strength: float) -> float:
        # Shifted by the mean entropy of each position, so that nothing overflows.
        weights = np.exp(-strength * (entropies - means[:, np.newaxis]))
        total = np.sum(probs * weights, axis=1) + rest
        gain = -strength * (target_entropies - means) - np.log(total)
        return -float(np.mean(of_targets + gain))

    result = scipy.optimize.minimize_scalar(
        nats, bounds=(-20.0, 20.0), method="bounded"
    )
    strength = float(result.x) if nats(result.x) < nats(0.0) else 0.0
    return CalibrationFit(strength, nats(0.0), nats(strength), len(text))


def _lookahead(
    logits: tf.Tensor, states: Any, model: StepwiseModel, candidates: int
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns entropies `[N, m]` after candidates `[N, m]`, and their mean `[N, 1]`."""
    number = tf.minimum(candidates, tf.shape(logits)[-1])
    best = tf.math.top_k(logits, number)
    ids = best.indices
    rows = tf.shape(ids)[0]
    at_once = tf.clip_by_value(_MOST_ROWS // tf.maximum(rows, 1), 1, number)
    blocks = -(-number // at_once)
    padded = tf.pad(ids, [[0, 0], [0, blocks * at_once - number]])
    repeated = tf.nest.map_structure(
        lambda state: tf.repeat(state, at_once, axis=0), states
    )

    def after(block: tf.Tensor) -> tf.Tensor:
        """Returns the entropies `[N, C]` after candidates `[N, C]`."""
        features, _ = model.forward(tf.reshape(block, [-1, 1]), repeated)
        next_logits = at_least_single(model.output_logits(features)[:, 0])
        log_probs = tf.nn.log_softmax(next_logits)
        terms = multiply_no_nan_log(tf.exp(log_probs), log_probs)
        entropies = tf.cast(-tf.reduce_sum(terms, axis=-1), logits.dtype)
        return tf.reshape(entropies, tf.shape(block))

    entropies = tf.map_fn(
        after,
        tf.transpose(tf.reshape(padded, [rows, blocks, at_once]), [1, 0, 2]),
        fn_output_signature=tf.TensorSpec([None, None], logits.dtype),
        parallel_iterations=1,
    )
    entropies = tf.reshape(tf.transpose(entropies, [1, 0, 2]), [rows, -1])[:, :number]
    weights = tf.nn.softmax(best.values)
    mean = tf.reduce_sum(weights * entropies, axis=1, keepdims=True)
    return entropies, ids, mean
