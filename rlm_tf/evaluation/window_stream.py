"""One pass of a language model over a token stream, window by window."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf
from tqdm import tqdm

from rlm_tf.data.batches import contiguous_batches
from rlm_tf.numerics import at_least_single

# Maps logits [B, T, V] and targets [B, T] to what is wanted of them.
Head = Callable[[tf.Tensor, tf.Tensor], Any]
Adapt = Callable[[tf.GradientTape, tf.Tensor], Any]


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
    temperature: float = 1.0,
    training: bool = False,
    adapt: Adapt | None = None,
    progress: str | None = None,
) -> Iterator[WindowOutput]:
    """Runs a model over a stream cut into `batch_size` rows.

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
        temperature: See `StatefulLanguageModel.output_logits`; the logits of other
            models are divided by it.
        training: Whether dropout acts.
        adapt: Called in the compiled step after a window has been scored, with a tape
            and the window's loss: the negative log-likelihood summed over time and
            averaged over rows, nats. It may change the model's weights.
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

    def run(inputs: tf.Tensor, states: Any) -> tuple[tf.Tensor, Any]:
        if recurrent:
            features, states = model.forward(inputs, states, training=training)
            logits = model.output_logits(features, temperature)
        else:
            logits = model(inputs, training=training) / temperature
        return at_least_single(logits), states

    @tf.function(autograph=False)
    def step(
        inputs: tf.Tensor, targets: tf.Tensor, weights: tf.Tensor, states: Any
    ) -> tuple[Any, Any]:
        if adapt is None:
            logits, states = run(inputs, states)
            return head(logits, targets), states
        with tf.GradientTape() as tape:
            logits, states = run(inputs, states)
            nll = tf.nn.sparse_softmax_cross_entropy_with_logits(targets, logits)
            loss = tf.reduce_sum(tf.where(weights > 0, nll, 0)) / batch_size
        outputs = head(logits, targets)
        with tf.control_dependencies(tf.nest.flatten([outputs, states])):
            adapt(tape, loss)
        return outputs, states

    states = model.zero_states(batch_size) if recurrent else ()
    row_length = -(-batches.num_targets // batch_size)
    hidden = True if progress is None else None
    columns = np.arange(window, dtype=np.int64)
    row_starts = row_length * np.arange(batch_size, dtype=np.int64)[:, np.newaxis]
    for number in tqdm(range(batches.steps), desc=progress, disable=hidden):
        (inputs, _), targets, weights = batches.element(number)
        outputs, states = step(
            tf.constant(inputs), tf.constant(targets), tf.constant(weights), states
        )
        yield WindowOutput(
            row_starts + number * window + columns,
            inputs,
            weights > 0,
            tf.nest.map_structure(lambda tensor: tensor.numpy(), outputs),
        )
