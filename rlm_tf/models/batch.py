"""What `fit()` and `evaluate()` give a model."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from rlm_tf.checks import check_ids


def tokens_of(x: Any) -> tf.Tensor:
    """Returns the tokens of an input that may come with start flags."""
    return x[0] if isinstance(x, tuple | list) else x


def check_batch(name: str, x: Any, targets: Any, sample_weight: Any) -> None:
    """Raises ValueError unless a batch is one of a language model.

    Args:
        name: Of the model, for the message.
        x: Tokens, int `[B, T]`, or `(tokens, start)`.
        targets: Next tokens, int `[B, T]`.
        sample_weight: One weight for each target, or None.
    """
    if targets is None:
        raise ValueError(
            f"{name}: no targets. Language models are trained and evaluated on "
            "`(inputs, next_tokens)` or `(inputs, next_tokens, weights)`, as "
            "`contiguous_batches(...).dataset()` gives them."
        )
    tokens = tokens_of(x)
    check_ids(name, tokens=tokens, targets=targets)
    shape = tf.TensorShape(tokens.shape)
    for argument, tensor, one in (
        ("targets", targets, "next token for each token"),
        ("sample_weight", sample_weight, "weight for each target"),
    ):
        if tensor is None:
            continue
        found = tf.TensorShape(tensor.shape)
        if not shape.is_compatible_with(found):
            raise ValueError(
                f"{name}: `{argument}` must have one {one}, shape {shape}, found "
                f"{found}."
            )


def without_last_axis(values: tf.Tensor) -> tf.Tensor:
    """Returns `[B]` for `[B, 1]`, and anything else as it is."""
    is_column = values.shape.rank == 2 and values.shape[1] == 1
    return values[:, 0] if is_column else values


def of_all_replicas(values: tf.Tensor) -> tf.Tensor:
    """Returns the rows of all replicas, one after the other."""
    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return values
    gathered = context.all_gather(values, axis=0)
    return tf.ensure_shape(gathered, [None, *values.shape[1:]])
