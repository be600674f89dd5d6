"""One view of all language models: states in, features and new states out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import keras
import tensorflow as tf

from rlm_tf.models.language.interface import LanguageModelInterface, interface_of

# Texts of unequal length are read in windows of these sizes, the largest that fits.
_WINDOWS = (256, 16, 1)


class StepwiseModel(Protocol):
    """What generation and scoring need of a language model.

    `zero_states` returns a nested structure of tensors whose first axis is the batch.
    """

    def zero_states(self, batch_size: int | tf.Tensor) -> Any: ...

    def forward(self, tokens: tf.Tensor, states: Any) -> tuple[tf.Tensor, Any]: ...

    def output_logits(self, features: tf.Tensor) -> tf.Tensor: ...


class RecomputedModel(LanguageModelInterface):
    """Makes a stepwise model of any causal Keras model that maps tokens to logits.

    Its state is the tokens read so far, and each step runs the model on all of them:
    n tokens cost n passes. Of more than `context_length` tokens the oldest are
    forgotten; how many a token then still sees depends on the window it was read in,
    at least half of `context_length`.

    Args:
        model: Maps int `[B, T]` to logits `[B, T, V]`, position t seeing tokens <= t.
        context_length: Most tokens that `model` is run on; int or scalar tensor.
    """

    def __init__(self, model: keras.Model, context_length: int | tf.Tensor) -> None:
        super().__init__(model)
        self.context_length = context_length

    def zero_states(self, batch_size: int | tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the tokens read, `[B, context_length]`, and their number, `[B]`."""
        return (
            tf.zeros([batch_size, self.context_length], tf.int32),
            tf.zeros([batch_size], tf.int32),
        )

    def forward(
        self,
        tokens: tf.Tensor,
        states: tuple[tf.Tensor, tf.Tensor],
        training: bool = False,
    ) -> tuple[tf.Tensor, tuple[tf.Tensor, tf.Tensor]]:
        """Reads `[B, T]` more tokens, T <= context_length; features are logits."""
        history, lengths = states
        limit, num_new = tf.shape(history)[1], tf.shape(tokens)[1]
        forgotten = tf.maximum(lengths + num_new - limit, 0)[:, tf.newaxis]
        kept = lengths[:, tf.newaxis] - forgotten
        place = tf.range(limit)[tf.newaxis]
        source = tf.where(
            place < kept,
            place + forgotten,
            limit + tf.clip_by_value(place - kept, 0, num_new - 1),
        )
        joint = tf.concat([history, tf.cast(tokens, tf.int32)], axis=1)
        joint = tf.gather(joint, source, batch_dims=1)
        joint = tf.where(place < kept + num_new, joint, 0)
        logits = self.model(joint, training=training)
        new = kept + tf.range(num_new)[tf.newaxis]
        features = tf.gather(logits, new, batch_dims=1)
        return features, (joint, kept[:, 0] + num_new)


def as_stepwise(
    model: keras.Model, context_length: int | tf.Tensor | None
) -> StepwiseModel:
    """Returns the stepwise view of a language model.

    Args:
        model: A recurrent language model (`zero_states`, `forward`, `output_logits`),
            a wrapper around one, or any Keras model from tokens to logits.
        context_length: See `RecomputedModel`; recurrent models need none.

    Raises:
        ValueError: If the model needs a `context_length` and has none.
    """
    interface = interface_of(model)
    interface.check_causal("Generation and scoring")
    if interface.has_states:
        return interface
    if context_length is None:
        raise ValueError(
            f"{type(interface.model).__name__} carries no states (`zero_states`, "
            "`forward`, `output_logits`), so it is run on its last tokens at every "
            "step: give `context_length`, the most tokens it can be run on."
        )
    return RecomputedModel(interface.model, context_length)


def recomputed_in(model: Any) -> RecomputedModel | None:
    """Returns the model that is run anew at every step, alone, tempered or mixed."""
    while model is not None and not isinstance(model, RecomputedModel):
        # That of an interface is the Keras model itself.
        inner = not isinstance(model, LanguageModelInterface)
        model = getattr(model, "model", None) if inner else None
    return model


def longest_window(model: StepwiseModel) -> int:
    """Returns how many tokens at most to pass to `forward` at once."""
    recomputed = recomputed_in(model)
    if recomputed is not None and isinstance(recomputed.context_length, int):
        return max(1, min(_WINDOWS[0], recomputed.context_length // 2))
    return _WINDOWS[0]


def read_tokens(model: StepwiseModel, tokens: tf.RaggedTensor, states: Any) -> Any:
    """Returns the states after reading texts of unequal length.

    All rows go through windows of 256 tokens, then 16, then 1; a row that has too few
    left for a window keeps its states. So a row is read in the same windows whatever
    else is in the batch.

    Args:
        model: The model.
        tokens: Int `[N, (T)]`.
        states: States of N rows.
    """
    flat = tokens.flat_values
    starts, lengths = tokens.row_starts(), tokens.row_lengths()
    done = tf.zeros_like(lengths)
    limit = longest_window(model)
    for size in sorted({min(size, limit) for size in _WINDOWS}, reverse=True):
        done, states = tf.while_loop(
            _has_window(lengths, size),
            _read_window(model, flat, starts, lengths, size),
            (done, states),
            parallel_iterations=1,
        )
    return states


def _has_window(lengths: tf.Tensor, size: int) -> Callable[..., tf.Tensor]:
    return lambda done, states: tf.reduce_any(done + size <= lengths)


def _read_window(
    model: StepwiseModel,
    flat: tf.Tensor,
    starts: tf.Tensor,
    lengths: tf.Tensor,
    size: int,
) -> Callable[..., tuple[tf.Tensor, Any]]:
    def body(done: tf.Tensor, states: Any) -> tuple[tf.Tensor, Any]:
        active = done + size <= lengths
        first = starts + tf.where(active, done, 0)
        places = first[:, tf.newaxis] + tf.range(size, dtype=first.dtype)
        # Rows that are through read whatever stands there; it is thrown away.
        places = tf.minimum(places, tf.size(flat, places.dtype) - 1)
        _, new_states = model.forward(tf.gather(flat, places), states)
        states = tf.nest.map_structure(
            lambda new, old: tf.where(_like(active, new), new, old), new_states, states
        )
        return done + tf.where(active, tf.constant(size, done.dtype), 0), states

    return body


def _like(active: tf.Tensor, state: tf.Tensor) -> tf.Tensor:
    """Returns `[N]` flags with as many axes as a state."""
    return tf.reshape(active, [-1] + [1] * (state.shape.rank - 1))
