"""One pass of a language model over a token stream, window by window."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf
from tqdm import tqdm

from rlm_tf.data.batches import contiguous_batches

# Maps logits [B, T, V] and targets [B, T] to what is wanted of them.
Head = Callable[[tf.Tensor, tf.Tensor], Any]


class WindowOutput(NamedTuple):
    """What one window gave.

    Attributes:
        positions: int64 `[B, T]`, the place in the stream of the token predicted there.
        inputs: int32 `[B, T]`, the tokens read.
        valid: bool `[B, T]`, False where there is padding.
        outputs: What the head returned, as NumPy arrays.
    """

    positions: np.ndarray
    inputs: np.ndarray
    valid: np.ndarray
    outputs: Any


def language_model_of(model: keras.Model) -> keras.Model:
    """Returns the language model that a training wrapper holds, or itself.

    A wrapper says `wraps_language_model` and holds it as `.model`.
    """
    while getattr(model, "wraps_language_model", False):
        model = model.model
    return model


def has_states(model: keras.Model) -> bool:
    """Whether the model is run with explicit states, as recurrent models are."""
    names = ("zero_states", "forward", "output_logits")
    return all(hasattr(model, name) for name in names)


def stream_windows(
    model: keras.Model,
    tokens: np.ndarray,
    batch_size: int,
    window: int,
    *,
    prefix: int,
    head: Head,
    progress: str | None = None,
) -> Iterator[WindowOutput]:
    """Runs a model in evaluation mode over a stream cut into `batch_size` rows.

    The rows are those of `contiguous_batches`. States start at zero in every row and
    are passed from window to window; the memory that the model itself carries is
    neither read nor written. A model without states starts afresh in every window.

    Args:
        model: A recurrent language model, a wrapper around one, or any Keras
            model from tokens to logits.
        tokens: Integers `[N]`.
        batch_size: Rows read in parallel.
        window: Tokens of a row read at once.
        prefix: The token before the first, `<eos>` as a rule.
        head: Maps logits `[B, T, V]` (at least float32) and targets `[B, T]` to a
            structure of tensors, inside the compiled step.
        progress: Label of a progress bar on terminals, or None for no bar.

    Raises:
        ValueError: If `tokens` is empty or not a vector of ids that the model knows,
            or a size is not a positive integer.
    """
    model = language_model_of(model)
    batches = contiguous_batches(
        tokens,
        batch_size,
        window,
        prefix=prefix,
        vocabulary_size=getattr(model, "vocabulary_size", None),
    )
    recurrent = has_states(model)

    @tf.function(autograph=False)
    def step(inputs: tf.Tensor, targets: tf.Tensor, states: Any) -> tuple[Any, Any]:
        if recurrent:
            features, states = model.forward(inputs, states)
            logits = model.output_logits(features)
        else:
            logits = model(inputs, training=False)
        if logits.dtype != tf.float64:
            logits = tf.cast(logits, tf.float32)
        return head(logits, targets), states

    states = model.zero_states(batch_size) if recurrent else ()
    row_length = -(-batches.num_targets // batch_size)
    hidden = True if progress is None else None
    columns = np.arange(window, dtype=np.int64)
    row_starts = row_length * np.arange(batch_size, dtype=np.int64)[:, np.newaxis]
    for number in tqdm(range(batches.steps), desc=progress, disable=hidden):
        (inputs, _), targets, weights = batches.element(number)
        outputs, states = step(tf.constant(inputs), tf.constant(targets), states)
        yield WindowOutput(
            row_starts + number * window + columns,
            inputs,
            weights > 0,
            tf.nest.map_structure(lambda tensor: tensor.numpy(), outputs),
        )
