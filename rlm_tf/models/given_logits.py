"""Logits that somebody else's model gives, checked where its mistakes show."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from rlm_tf.checks import check_running

# So few rows cost nothing, and do not sum to 1 by chance.
_ROWS = 8


def token_logits(model: keras.Model, tokens: tf.Tensor, training: bool) -> tf.Tensor:
    """Returns a model's logits `[B, T, V]` for tokens `[B, T]`.

    Raises:
        ValueError: If the model takes more than tokens, or gives something else. Of
            probabilities in a graph: see `rlm_tf.checks.check_running`.
    """
    name = type(model).__name__
    inputs = getattr(model, "inputs", None) or []
    if len(inputs) > 1:
        names = ", ".join(f"`{tensor.name}`" for tensor in inputs)
        raise ValueError(
            f"{name} `{model.name}`: a language model takes tokens [B, T] alone, found "
            f"{len(inputs)} inputs, {names}. Wrap it in a model of tokens that makes "
            "the other inputs itself."
        )
    logits = model(tokens, training=training)
    shape = getattr(logits, "shape", None)
    wanted = [*tf.TensorShape(tokens.shape), None]
    if shape is None or not tf.TensorShape(shape).is_compatible_with(wanted):
        found = type(logits).__name__ if shape is None else f"shape {list(shape)}"
        raise ValueError(
            f"{name} `{model.name}`: a language model maps tokens [B, T] to logits "
            f"[B, T, V], found tokens of shape {wanted[:-1]} and outputs of {found}. "
            "Keep a prediction for every position: leave out layers that pool a "
            "sequence or return its last state only."
        )
    return no_probabilities(f"{name} `{model.name}`", logits)


def no_probabilities(name: str, logits: Any, least_rows: int = 1) -> tf.Tensor:
    """Returns logits `[..., V]`, which fail to compute if they are probabilities.

    The first rows are looked at: numbers that are not negative and sum to 1 are what a
    softmax gives, and another one would make of them almost the uniform distribution.

    Args:
        name: Of the model; the message begins with it.
        logits: `[..., V]`.
        least_rows: Of fewer rows, which may sum to 1 by chance where classes are few,
            nothing is said.

    Raises:
        ValueError: In eager mode, if they are probabilities.
    """
    logits = tf.convert_to_tensor(logits)
    first = logits
    while first.shape.rank > 2:
        first = first[0]
    rows = tf.cast(first[:_ROWS], tf.float32)
    sums = tf.reduce_sum(rows, axis=-1)
    close = 1e-3 if logits.dtype.size > 2 else 2e-2
    like_sums = tf.reduce_all(tf.abs(sums - 1.0) < close)
    enough = tf.shape(rows)[0] >= least_rows
    found = like_sums & tf.reduce_all(rows >= 0.0) & (tf.size(rows) > 0) & enough
    checked = check_running(
        tf.logical_not(found),
        f"{name}: outputs must be logits, not probabilities. Leave out the softmax at "
        "the end, or take the logarithm of what it gives. Rows must not sum to 1",
        tf.reduce_max(sums),
    )
    with tf.control_dependencies(checked):
        return tf.identity(logits)
