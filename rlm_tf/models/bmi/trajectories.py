"""Pairs of pieces that a language model says itself."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from rlm_tf.models.language.interface import LanguageModelInterface
from rlm_tf.numerics import at_least_single
from rlm_tf.padding import PADDING
from rlm_tf.token_draws import draw_tokens


class Trajectories(NamedTuple):
    """Two pieces after each context, said by the model.

    Attributes:
        both: X and Y behind each other, int32 `[R, 2 L]`, padded with -1.
        first: X, int32 `[R, L]`, padded with -1.
        second: Y, likewise.
    """

    both: tf.Tensor
    first: tf.Tensor
    second: tf.Tensor


def trajectories(
    view: LanguageModelInterface,
    contexts: tf.Tensor,
    uniforms: tf.Tensor,
    greedy: tf.Tensor,
    end_id: int | None,
) -> Trajectories:
    """Lets a model with states go on behind contexts, in evaluation mode.

    Args:
        view: The model.
        contexts: int `[R, C]`, padded with -1; at least one token each.
        uniforms: float64 in [0, 1), `[R, 2 L]`, by which tokens are drawn.
        greedy: bool `[R]`, rows that take the most probable token in place of it.
        end_id: The token that ends a piece; a piece without one ends after L tokens.
            None: all pieces have L tokens.
    """
    rows, total = uniforms.shape[0] or tf.shape(uniforms)[0], uniforms.shape[1]
    most = total // 2
    before = tf.reduce_sum(tf.cast(contexts != PADDING, tf.int32), axis=1)
    given = tf.maximum(contexts, 0)

    def is_going(t: tf.Tensor, token: Any, pieces: tf.Tensor, *_: Any) -> tf.Tensor:
        return (t < contexts.shape[1] - 1 + total) & tf.reduce_any(pieces < 2)

    def step(
        t: tf.Tensor,
        token: tf.Tensor,
        pieces: tf.Tensor,
        count: tf.Tensor,
        states: Any,
        written: tf.TensorArray,
    ) -> tuple[Any, ...]:
        features, states = view.forward(token[:, tf.newaxis], states)
        logits = at_least_single(view.output_logits(features)[:, 0])
        # Of the token at t + 1, which may still be one of the context.
        said = t + 1 - before
        place = tf.clip_by_value(said, 0, total - 1)
        drawn = draw_tokens(logits, tf.gather(uniforms, place, batch_dims=1))
        best = tf.argmax(logits, axis=-1, output_type=tf.int32)
        own = tf.where(greedy, best, drawn)
        read = tf.gather(given, tf.minimum(t + 1, contexts.shape[1] - 1), axis=1)
        token = tf.where(said < 0, read, own)
        count += tf.cast(said >= 0, tf.int32)
        ends = count == most
        if end_id is not None:
            ends |= (said >= 0) & (token == end_id)
        pieces += tf.cast(ends, tf.int32)
        count = tf.where(ends, 0, count)
        return t + 1, token, pieces, count, states, written.write(t, token)

    zeros = tf.zeros([rows], tf.int32)
    start = (
        tf.constant(0),
        given[:, 0],
        zeros,
        zeros,
        view.zero_states(rows),
        tf.TensorArray(tf.int32, contexts.shape[1] - 1 + total, element_shape=[None]),
    )
    *_, written = tf.while_loop(is_going, step, start, parallel_iterations=1)
    # Steps that no row needed are zeros. Entry t is the token at t + 1.
    tokens = tf.transpose(written.stack())
    said = tf.gather(tokens, before[:, tf.newaxis] - 1 + tf.range(total), batch_dims=1)
    return _pieces(tf.stop_gradient(said), end_id)


def _pieces(said: tf.Tensor, end_id: int | None) -> Trajectories:
    """Cuts what a model says, `[R, 2 L]`, into the first two pieces."""
    most = said.shape[1] // 2
    first = _length(said[:, :most], end_id)
    places = tf.range(most)[tf.newaxis]
    second = tf.gather(said, first[:, tf.newaxis] + places, batch_dims=1)
    length = _length(second, end_id)
    whole = tf.range(2 * most)[tf.newaxis]
    return Trajectories(
        tf.where(whole < (first + length)[:, tf.newaxis], said, PADDING),
        tf.where(places < first[:, tf.newaxis], said[:, :most], PADDING),
        tf.where(places < length[:, tf.newaxis], second, PADDING),
    )


def _length(piece: tf.Tensor, end_id: int | None) -> tf.Tensor:
    """Returns the number of tokens `[R]` of pieces `[R, L]`, their end included."""
    steps = piece.shape[1]
    if end_id is None:
        return tf.fill([tf.shape(piece)[0]], steps)
    behind = tf.where(piece == end_id, tf.range(1, steps + 1), steps)
    return tf.reduce_min(behind, axis=1)
