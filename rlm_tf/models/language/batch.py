"""What `fit()` and `evaluate()` give a model."""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf

from rlm_tf.checks import check_ids, known_ids


def tokens_of(x: Any) -> tf.Tensor:
    """Returns the tokens of an input that may come with start flags.

    Raises:
        ValueError: If the input is a dictionary.
    """
    _refuse_dictionary("Inputs", x)
    return x[0] if isinstance(x, tuple | list) else x


def _refuse_dictionary(argument: str, value: Any) -> None:
    if isinstance(value, dict):
        names = ", ".join(repr(name) for name in value)
        raise ValueError(
            "A language model takes batches `(inputs, next_tokens)`, with inputs "
            f"`tokens` or `(tokens, start)`. {argument} must be no dictionary, found "
            f"one of {names}: take out what is needed, for instance by "
            '`dataset.map(lambda x, y: (x["tokens"], y))`.'
        )


def checked_batch(
    name: str,
    x: Any,
    targets: Any,
    sample_weight: Any,
    vocabulary_size: int | None,
    *,
    only_counted: bool = False,
) -> tuple[Any, tf.Tensor]:
    """Returns inputs and targets, which fail to compute if ids are none of a model's.

    Args:
        name: Of the model, for the message.
        x: Tokens, int `[B, T]`, or `(tokens, start)`.
        targets: Next tokens, int `[B, T]`.
        sample_weight: One weight for each target, or None.
        vocabulary_size: Ids must be below it; None: unknown.
        only_counted: Whether tokens beside targets of weight 0 may be anything.

    Raises:
        ValueError: If the batch is not one of a language model. Of ids in a graph:
            `check_running` tells.
    """
    _refuse_dictionary("Next tokens", targets)
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
    if vocabulary_size is None:
        return x, targets
    known = functools.partial(known_ids, name, vocabulary_size)
    weights = sample_weight if only_counted else None
    tokens = known("tokens", tokens, weights)
    targets = known("targets", targets)
    return ((tokens, *x[1:]) if isinstance(x, tuple | list) else tokens), targets


def without_last_axis(values: tf.Tensor) -> tf.Tensor:
    """Returns `[B]` for `[B, 1]`, and anything else as it is."""
    is_column = values.shape.rank == 2 and values.shape[1] == 1
    return values[:, 0] if is_column else values
