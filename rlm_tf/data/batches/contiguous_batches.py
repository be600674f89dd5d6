"""Contiguous batches: windows of a token stream in which every row reads on."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_integer, checked_tokens
from rlm_tf.host_tensors import host_tensor

MOST_IDS = 2**31  # ids are int32

# ((tokens [B, T], start [B]), next_tokens [B, T], weights [B, T])
Element = tuple[tuple[tf.Tensor, tf.Tensor], tf.Tensor, tf.Tensor]
# What it gives may have more beside the tokens.
Transform = Callable[[Element, tf.Tensor, tf.Tensor], Any]


class BatchArrays(NamedTuple):
    """One element as NumPy arrays.

    Attributes:
        inputs: `(tokens int32 [B, T], start int32 [B])`; `start` is 1 where the row's
            stream begins and a carried state must be zeroed.
        next_tokens: int32 `[B, T]`.
        weights: float32 `[B, T]`, 1 for a token that is to be scored, 0 for padding.
    """

    inputs: tuple[np.ndarray, np.ndarray]
    next_tokens: np.ndarray
    weights: np.ndarray


class ContiguousBatches:
    """Cuts a token stream into `batch_size` equally long rows read in parallel.

    The stream is `prefix` followed by the tokens, so that the first token is predicted
    too. With N tokens, row b predicts tokens `b L .. (b+1) L - 1`, L = ceil(N / B), and
    step s predicts positions `s T .. (s+1) T - 1` of every row. What lies beyond a
    row's or the stream's end is padding: the tokens are `prefix`, the weight is 0.
    Every token has weight 1 exactly once, whatever the batch size and window.

    Attributes:
        batch_size: B.
        window: T.
        prefix: The token that stands before the stream, `<eos>` as a rule.
        steps: Number of elements of one pass, ceil(L / T).
        num_targets: Number of tokens scored in one pass, N.
        rows: int32 `[B, steps T + 1]`, the input of each row's first target, its
            targets, padding.
        row_lengths: int32 `[B]`, the targets of each row.
    """

    def __init__(
        self,
        tokens: np.ndarray,
        batch_size: int,
        window: int,
        *,
        prefix: int,
        vocabulary_size: int | None = None,
    ) -> None:
        """See `contiguous_batches`."""
        name = "contiguous_batches"
        check_integer(name, "batch_size", batch_size, 1)
        check_integer(name, "window", window, 1)
        check_integer(name, "prefix", prefix, 0)
        size = MOST_IDS if vocabulary_size is None else vocabulary_size
        check_integer(name, "vocabulary_size", size, 1)
        if prefix >= size:
            raise ValueError(
                f"contiguous_batches: `prefix` must be an id in [0, {size}), found "
                f"{prefix}."
            )
        tokens = checked_tokens(name, tokens, size, dtype=np.int32)
        if tokens.size == 0:
            raise ValueError("contiguous_batches: `tokens` is empty, expected N >= 1.")
        self.batch_size = batch_size
        self.window = window
        self.prefix = prefix
        self.num_targets = int(tokens.size)
        length = -(-self.num_targets // batch_size)
        self.steps = -(-length // window)

        # Row b holds the input of its first target and then its L targets.
        stream = np.full(batch_size * length + 1, prefix, np.int32)
        stream[1 : self.num_targets + 1] = tokens
        rows = np.full((batch_size, self.steps * window + 1), prefix, np.int32)
        rows[:, : length + 1] = np.lib.stride_tricks.sliding_window_view(
            stream, length + 1
        )[::length]
        self.rows = rows
        ends = self.num_targets - length * np.arange(batch_size)
        self.row_lengths = np.clip(ends, 0, length).astype(np.int32)

    def tokens(self) -> np.ndarray:
        """Returns the tokens, int32 `[N]`."""
        rows = zip(self.rows, self.row_lengths, strict=True)
        return np.concatenate([row[1 : length + 1] for row, length in rows])

    def of_places(self) -> ContiguousBatches:
        """Returns batches whose tokens are the places `0 .. N-1` of these."""
        found = copy.copy(self)
        places = np.arange(self.num_targets, dtype=np.int32)
        found.rows = ContiguousBatches(
            places, self.batch_size, self.window, prefix=0
        ).rows
        return found

    def element(self, step: int) -> BatchArrays:
        """Returns the element of one step of a pass.

        Raises:
            IndexError: If `step` is outside `[0, steps)`.
        """
        if not 0 <= step < self.steps:
            raise IndexError(f"step must be in [0, {self.steps}), found {step}.")
        first = step * self.window
        block = self.rows[:, first : first + self.window + 1]
        positions = np.arange(first, first + self.window, dtype=np.int32)
        return BatchArrays(
            (block[:, :-1], np.full(self.batch_size, int(step == 0), np.int32)),
            block[:, 1:],
            (positions < self.row_lengths[:, None]).astype(np.float32),
        )

    def dataset(
        self,
        start_step: int = 0,
        repeat: bool = False,
        *,
        epoch: int = 0,
        transform: Transform | None = None,
    ) -> tf.data.Dataset:
        """Returns the elements `((tokens, start), next_tokens, weights)` in order.

        The element of a step is a function of the tokens and the step alone (and of
        the epoch, with a random transform), so that a counter is all that is needed to
        go on after an interruption.

        Args:
            start_step: Step of the first element. With `repeat` it may exceed `steps`:
                it counts on through the epochs.
            repeat: Whether to pass over the tokens again and again.
            epoch: Number of the epoch that step 0 belongs to.
            transform: `(element, epoch, step) -> element` with int64 scalars, `Noising`
                for example. Without `repeat` every pass is that of `epoch`: for draws
                that differ between the epochs of `fit()`, use `ResumableBatches` and
                its `follow_epochs()`.

        Raises:
            ValueError: If `start_step` is outside `[0, steps]` (`[0, inf)` with
                `repeat`).
        """
        if start_step < 0 or (start_step > self.steps and not repeat):
            raise ValueError(
                f"ContiguousBatches.dataset: start_step must be in [0, {self.steps}], "
                f"found {start_step}."
            )
        # One constant that the steps slice: windows cut beforehand would double it.
        rows = host_tensor(self.rows)
        lengths = host_tensor(self.row_lengths)[:, tf.newaxis]

        def element(counter: tf.Tensor) -> Element:
            step = counter % self.steps
            first = step * self.window
            block = tf.slice(rows, [0, first], [self.batch_size, self.window + 1])
            block = tf.ensure_shape(block, [self.batch_size, self.window + 1])
            positions = tf.cast(first, tf.int32) + tf.range(self.window)
            result = (
                (
                    block[:, :-1],
                    tf.fill([self.batch_size], tf.cast(tf.equal(step, 0), tf.int32)),
                ),
                block[:, 1:],
                tf.cast(positions < lengths, tf.float32),
            )
            if transform is None:
                return result
            return transform(result, epoch + counter // self.steps, step)

        if repeat:
            counters = tf.data.Dataset.counter(start_step)
        else:
            counters = tf.data.Dataset.range(start_step, self.steps)
        return counters.map(
            element, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True
        ).prefetch(tf.data.AUTOTUNE)


def contiguous_batches(
    tokens: np.ndarray,
    batch_size: int,
    window: int,
    *,
    prefix: int,
    vocabulary_size: int | None = None,
) -> ContiguousBatches:
    """Cuts a token stream into contiguous batches.

    Args:
        tokens: Integers `[N]`.
        batch_size: Number of rows B that are read in parallel.
        window: Number of tokens T that a step reads.
        prefix: The token before the first, the id of `<eos>` as a rule.
        vocabulary_size: If given, tokens and prefix must be below it. A model whose
            vocabulary is smaller than the text's fails deep inside TensorFlow.

    Returns:
        An object with `steps`, `num_targets`, `element(step)` and `dataset()`.

    Raises:
        ValueError: If `tokens` is empty or not a vector of ids, or a size is not a
            positive integer.
    """
    return ContiguousBatches(
        tokens, batch_size, window, prefix=prefix, vocabulary_size=vocabulary_size
    )
