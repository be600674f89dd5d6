"""What a language student says itself, to be judged by its teacher."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from rlm_tf.layers.basic.replica_noise import replica_noise
from rlm_tf.models.distillation.language_teachers import (
    ModelTeachers,
    RestrictedTeacher,
)
from rlm_tf.models.imm.short_contexts import short_contexts
from rlm_tf.models.language.interface import LanguageModelInterface
from rlm_tf.numerics import at_least_single
from rlm_tf.token_draws import draw_tokens


def own_samples(
    view: LanguageModelInterface,
    first: tf.Tensor,
    length: int | tf.Tensor,
    seeds: keras.random.SeedGenerator,
) -> tf.Tensor:
    """Returns texts that a model says, without dropout and without gradient.

    Args:
        view: A model with states.
        first: Int `[B]`, the first token of each.
        length: T, tokens of each, the first one included.
        seeds: Of the draws, which are made for the rows of all replicas together.

    Returns:
        int32 `[B, T]`.
    """
    rows = tf.shape(first)[0]

    def draw(shape: Sequence[Any], seed: tf.Tensor) -> tf.Tensor:
        return tf.random.stateless_uniform(shape, seed, dtype=tf.float64)

    uniforms = replica_noise(draw, [rows, length], seeds, 0)

    def step(
        t: tf.Tensor, token: tf.Tensor, states: Any, written: tf.TensorArray
    ) -> tuple[Any, ...]:
        features, states = view.forward(token[:, tf.newaxis], states)
        logits = at_least_single(view.output_logits(features)[:, 0])
        token = draw_tokens(logits, uniforms[:, t])
        return t + 1, token, states, written.write(t, token)

    first = tf.cast(first, tf.int32)
    written = tf.TensorArray(tf.int32, length, element_shape=first.shape)
    *_, written = tf.while_loop(
        lambda t, *_: t < length,
        step,
        (tf.constant(1), first, view.zero_states(rows), written.write(0, first)),
    )
    tokens = tf.stop_gradient(tf.transpose(written.stack()))
    return tf.ensure_shape(tokens, [first.shape[0], None])


def said_of_samples(
    view: LanguageModelInterface,
    teachers: RestrictedTeacher | ModelTeachers,
    tokens: tf.Tensor,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns what teacher and student say after each token of such texts.

    Both read them from zero states, and no memory is touched.

    Returns:
        The teacher's log-probabilities `[B T, V]`, the student's logits `[B T, V]` with
        dropout, and weights `[B T]`: 0 where a restricted model lacks words before.
    """
    rows = tf.shape(tokens)[0]
    features, _ = view.forward(tokens, view.zero_states(rows), training=True)
    logits = at_least_single(view.output_logits(features))
    logits = tf.reshape(logits, [-1, logits.shape[-1]])
    if isinstance(teachers, RestrictedTeacher):
        length = teachers.models[0].context_length
        said = teachers.of_contexts(short_contexts(tokens, length))
    else:
        start = tf.ones([rows], tf.int32)
        said, _ = teachers.forward(tokens, start, teachers.zero_states(rows))
    return tf.stop_gradient(said), logits, teachers.weights(tokens, None)
