"""One pass of a language model over a token stream, window by window."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf
from tqdm import tqdm

from rlm_tf.checks import plain_errors
from rlm_tf.data.batches.contiguous_batches import contiguous_batches
from rlm_tf.models.language.interface import interface_of
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


class WindowReader:
    """Runs a model over streams cut into rows; its step is compiled once for all.

    The rows are those of `contiguous_batches`. States start at zero in every row and
    are passed from window to window; the memory that the model itself carries is
    neither read nor written. A model without states starts afresh in every window.

    Args:
        model: A recurrent language model, a wrapper around one, or any Keras
            model from tokens to logits.
        batch_size: Rows read in parallel.
        window: Tokens of a row read at once.
        prefix: The token before the first, `<eos>` as a rule.
        head: Maps logits `[B, T, V]` (at least float32) and targets `[B, T]` to a
            structure of tensors, inside the compiled step.
        training: Whether dropout acts.
        adapt: Called in the compiled step after a window has been scored, with a tape
            and the window's loss: the negative log-likelihood summed over time and
            averaged over rows, nats. It may change the model's weights.
    """

    def __init__(
        self,
        model: keras.Model,
        batch_size: int,
        window: int,
        *,
        prefix: int,
        head: Head,
        training: bool = False,
        adapt: Adapt | None = None,
    ) -> None:
        self._interface = interface_of(model)
        self._interface.check_causal("WindowReader")
        self.model = self._interface.model
        self.batch_size = batch_size
        self.window = window
        self.prefix = prefix
        self._head = head
        self._training = training
        self._adapt = adapt
        self._step = tf.function(self._scored, autograph=False)

    def windows(
        self,
        tokens: np.ndarray,
        *,
        temperature: float = 1.0,
        progress: str | None = None,
    ) -> Iterator[WindowOutput]:
        """Reads a stream.

        Args:
            tokens: Integers `[N]`.
            temperature: See `StatefulLanguageModel.output_logits`; the logits of other
                models are divided by it.
            progress: Label of a progress bar on terminals, or None for no bar.

        Raises:
            ValueError: If `tokens` is empty or not a vector of ids that the model
                knows, or a size is not a positive integer.
        """
        batches = contiguous_batches(
            tokens,
            self.batch_size,
            self.window,
            prefix=self.prefix,
            vocabulary_size=self._interface.vocabulary_size,
        )
        states = self._interface.zero_states(self.batch_size)
        row_length = -(-batches.num_targets // self.batch_size)
        hidden = True if progress is None else None
        columns = np.arange(self.window, dtype=np.int64)
        row_starts = row_length * np.arange(self.batch_size, dtype=np.int64)
        heat = tf.constant(temperature, tf.float64)
        for number in tqdm(range(batches.steps), desc=progress, disable=hidden):
            (inputs, _), targets, weights = batches.element(number)
            batch = (tf.constant(part) for part in (inputs, targets, weights))
            with plain_errors():
                outputs, states = self._step(*batch, states, heat)
            yield WindowOutput(
                row_starts[:, np.newaxis] + number * self.window + columns,
                inputs,
                weights > 0,
                tf.nest.map_structure(lambda tensor: tensor.numpy(), outputs),
            )

    def _logits(
        self, inputs: tf.Tensor, states: Any, temperature: tf.Tensor
    ) -> tuple[tf.Tensor, Any]:
        features, states = self._interface.forward(
            inputs, states, training=self._training
        )
        logits = self._interface.output_logits(features, temperature)
        return at_least_single(logits), states

    def _scored(
        self,
        inputs: tf.Tensor,
        targets: tf.Tensor,
        weights: tf.Tensor,
        states: Any,
        temperature: tf.Tensor,
    ) -> tuple[Any, Any]:
        if self._adapt is None:
            logits, states = self._logits(inputs, states, temperature)
            return self._head(logits, targets), states
        with tf.GradientTape() as tape:
            logits, states = self._logits(inputs, states, temperature)
            nll = tf.nn.sparse_softmax_cross_entropy_with_logits(targets, logits)
            loss = tf.reduce_sum(tf.where(weights > 0, nll, 0)) / self.batch_size
        outputs = self._head(logits, targets)
        with tf.control_dependencies(tf.nest.flatten([outputs, states])):
            self._adapt(tape, loss)
        return outputs, states
