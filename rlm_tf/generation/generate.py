"""Text generation in one graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_range
from rlm_tf.generation.entropy_calibration import MOST_CALIBRATION, calibrate
from rlm_tf.generation.filters import filter_logits
from rlm_tf.generation.sampling import row_seeds, uniform_draws
from rlm_tf.generation.stepwise import (
    StepwiseModel,
    as_stepwise,
    read_tokens,
)
from rlm_tf.models.language.interface import interface_of
from rlm_tf.numerics import at_least_single
from rlm_tf.token_draws import draw_tokens
from rlm_tf.typing import TensorLike


def generate(
    model: keras.Model | StepwiseModel,
    prompts: TensorLike | tf.RaggedTensor,
    max_tokens: int | TensorLike,
    *,
    seed: int | TensorLike,
    temperature: float | TensorLike = 1.0,
    top_k: int | TensorLike = 0,
    top_p: float | TensorLike = 1.0,
    eta: float | TensorLike = 0.0,
    typical_p: float | TensorLike = 1.0,
    calibration: float | tf.Tensor = 0.0,
    candidates: int = 64,
    stop_token: int | None = None,
    banned_tokens: Sequence[int] = (),
    context_length: int | None = None,
) -> tf.RaggedTensor:
    """Continues prompts, token by token.

    The prompts are read first; then each iteration of a `tf.while_loop` filters the
    next-token logits (`filter_logits`), draws a token in every row and feeds it back.
    A row's tokens depend on its prompt, its parameters and its seed, not on the other
    rows (but products of matrices of another size may round the last bit differently).
    It runs eagerly too, with the same result; inside a `tf.function` it is faster.

    Args:
        model: A recurrent language model, a wrapper around one, or any Keras
            model from tokens to logits (slower, see `RecomputedModel`).
        prompts: Int `[N, P]`, dense or ragged, at least one token each.
        max_tokens: Number of new tokens.
        seed: Integer, scalar or `[N]`; see `row_seeds`.
        temperature: Scalar or `[N]`; 0 takes the most probable token.
        top_k: Scalar or `[N]`; 0 does not limit.
        top_p: Scalar or `[N]`; 1 does not limit.
        eta: Scalar or `[N]`; 0 does not limit.
        typical_p: Scalar or `[N]`; 1 does not limit.
        calibration: Strength of entropy calibration, a scalar in [-1e6, 1e6], which
            comes before the filters; see `calibrate` and `fit_calibration`. 0: none,
            and then it costs nothing.
        candidates: See `calibrate`.
        stop_token: A row ends before this token; None: never.
        banned_tokens: Ids that are never drawn.
        context_length: Most tokens that a model without states is run on; None: as
            many as there are.

    Returns:
        The new tokens, int32 `[N, (T)]`, T = `max_tokens` unless a row was stopped.

    Raises:
        ValueError: If a shape or a number is out of range.
        tf.errors.InvalidArgumentError: When run, if a prompt has no token, or
            `calibration` is a tensor of a graph and out of range.
    """
    prompts = _as_ragged(prompts)
    if isinstance(max_tokens, int) and max_tokens < 0:
        raise ValueError(f"generate: `max_tokens` must be >= 0, found {max_tokens}.")
    calibration = _checked_calibration(calibration)
    lengths = prompts.row_lengths()
    has_tokens = tf.debugging.assert_positive(
        lengths, "generate: every prompt needs at least one token."
    )
    stepwise = _stepwise(model, context_length, lengths, max_tokens)
    num_rows = prompts.nrows()
    with tf.control_dependencies([] if has_tokens is None else [has_tokens]):
        states = stepwise.zero_states(tf.cast(num_rows, tf.int32))
    states = read_tokens(stepwise, prompts[:, :-1], states)
    last = tf.gather(prompts.flat_values, prompts.row_limits() - 1)
    uniforms = uniform_draws(row_seeds(seed, num_rows), max_tokens)
    banned = None
    if len(banned_tokens):
        banned = tf.constant([*banned_tokens], tf.int32)
    parameters = {
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "eta": eta,
        "typical_p": typical_p,
    }

    def is_going(t: tf.Tensor, last: Any, ended: tf.Tensor, *_: Any) -> tf.Tensor:
        going = t < max_tokens
        return going if stop_token is None else going & ~tf.reduce_all(ended)

    def step(
        t: tf.Tensor,
        last: tf.Tensor,
        ended: tf.Tensor,
        length: tf.Tensor,
        states: Any,
        written: tf.TensorArray,
    ) -> tuple[Any, ...]:
        features, states = stepwise.forward(last[:, tf.newaxis], states)
        logits = at_least_single(stepwise.output_logits(features)[:, 0])
        if banned is not None:
            logits = _without(logits, banned)
        logits = tf.cond(
            tf.not_equal(calibration, 0.0),
            lambda: calibrate(logits, states, stepwise, calibration, candidates),
            lambda: logits,
        )
        logits = filter_logits(logits, **parameters)
        token = draw_tokens(logits, uniforms[:, t])
        if stop_token is not None:
            ended |= tf.equal(token, stop_token)
        length += tf.cast(~ended, tf.int64)
        return t + 1, token, ended, length, states, written.write(t, token)

    start = (
        tf.constant(0),
        last,
        tf.zeros([num_rows], tf.bool),
        tf.zeros([num_rows], tf.int64),
        states,
        tf.TensorArray(tf.int32, 0, dynamic_size=True, element_shape=[None]),
    )
    t, _, _, length, _, written = tf.while_loop(
        is_going, step, start, parallel_iterations=1
    )
    # An array without entries cannot be stacked.
    written = tf.cond(
        t > 0,
        lambda: tf.transpose(written.stack()),
        lambda: tf.zeros([num_rows, 0], tf.int32),
    )
    return tf.RaggedTensor.from_tensor(written, lengths=length)


def _without(logits: tf.Tensor, banned: tf.Tensor) -> tf.Tensor:
    """Returns logits `[N, V]` that are minus infinity for some tokens."""
    size = tf.shape(logits)[-1]
    in_range = tf.debugging.Assert(
        tf.reduce_all((banned >= 0) & (banned < size)),
        ["generate: `banned_tokens` must be ids of tokens, found", banned],
    )
    with tf.control_dependencies([in_range] if in_range is not None else []):
        hits = tf.reduce_any(tf.one_hot(banned, size, True, False, dtype=tf.bool), 0)
    return tf.where(hits, tf.constant(-np.inf, logits.dtype), logits)


def _checked_calibration(calibration: float | tf.Tensor) -> float | tf.Tensor:
    """Returns the strength of calibration: a scalar, finite and of bounded size."""
    most = MOST_CALIBRATION
    in_tensor = tf.is_tensor(calibration)
    if in_tensor:
        rank = tf.convert_to_tensor(calibration).shape.rank
    else:
        rank = np.ndim(calibration)
    if rank:
        raise ValueError(
            f"generate: `calibration` must be a scalar, found {calibration}."
        )
    check_range("generate", -most, most, calibration=calibration)
    if not in_tensor:
        return float(calibration)
    message = f"generate: calibration must be in [{-most:g}, {most:g}], found"
    # Also what is no number fails.
    valid = (calibration >= -most) & (calibration <= most)
    with tf.control_dependencies([tf.debugging.Assert(valid, [message, calibration])]):
        return tf.identity(calibration)


def _stepwise(
    model: Any,
    context_length: int | None,
    lengths: tf.Tensor,
    max_tokens: int | TensorLike,
) -> StepwiseModel:
    if not isinstance(model, keras.Model):
        return model  # already stepwise
    capacity: int | tf.Tensor | None = context_length
    if capacity is None and not interface_of(model).has_states:
        longest = tf.reduce_max(tf.concat([lengths, [1]], axis=0))
        capacity = tf.cast(longest, tf.int32) + max_tokens
    return as_stepwise(model, capacity)


def _as_ragged(prompts: TensorLike | tf.RaggedTensor) -> tf.RaggedTensor:
    if not isinstance(prompts, tf.RaggedTensor):
        prompts = tf.convert_to_tensor(prompts)
        if prompts.shape.rank != 2 or not prompts.dtype.is_integer:
            raise ValueError(
                "generate: `prompts` must be integers with axes [N P], found "
                f"{prompts.dtype.name} of shape {prompts.shape}."
            )
        prompts = tf.RaggedTensor.from_tensor(prompts)
    if prompts.ragged_rank != 1 or prompts.shape.rank != 2:
        raise ValueError(
            f"generate: `prompts` must have axes [N (P)], found {prompts.shape}."
        )
    return tf.cast(prompts, tf.int32)
