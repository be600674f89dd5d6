"""Windows of a token stream whose lengths differ from step to step."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_integer, check_range
from rlm_tf.data.batches.contiguous_batches import ContiguousBatches, Element
from rlm_tf.host_tensors import host_tensor


class VariableWindows:
    """Contiguous batches of windows of random lengths, as AWD-LSTM is trained on.

    A length is normal around `base`, or around half of it with probability
    `short_share`, cut to a whole number, and at least `least`. The lengths of a pass
    are drawn once and come in another order in each epoch, a function of (seed, epoch):
    so the windows end at other places each time, and every epoch has as many; one of
    them, somewhere, has what the others leave of the text. Rows and padding are
    those of `ContiguousBatches`.

    Used as `ResumableBatches(VariableWindows(...))` (`rlm_tf.training`). A model with
    `base_window=base` takes steps in proportion to the real length.

    Args:
        tokens: Integers `[N]`.
        batch_size: B, rows that are read in parallel.
        base: Usual length.
        prefix: The token before the first, the id of `<eos>` as a rule.
        seed: Of the lengths and their orders.
        short_share: Probability of a length around `base / 2`.
        deviation: Standard deviation of lengths.
        least: Shortest length that is drawn.
        most: Longest length; None: `base + 40`.
        vocabulary_size: If given, tokens and prefix must be below it.

    Attributes:
        steps: Windows of an epoch.
        num_targets: Tokens scored in one epoch, N.

    Raises:
        ValueError: If `tokens` is empty or an argument out of range.
    """

    def __init__(
        self,
        tokens: np.ndarray,
        batch_size: int,
        base: int = 70,
        *,
        prefix: int,
        seed: int = 0,
        short_share: float = 0.05,
        deviation: float = 5.0,
        least: int = 5,
        most: int | None = None,
        vocabulary_size: int | None = None,
    ) -> None:
        name = "VariableWindows"
        check_integer(name, "base", base, 1)
        check_integer(name, "seed", seed, 0)
        check_integer(name, "least", least, 1)
        most = base + 40 if most is None else most
        check_integer(name, "most", most, least)
        check_range(name, 0.0, 1.0, short_share=short_share)
        check_range(name, 0.0, np.inf, deviation=deviation)
        # Windows of one token: rows without padding behind their longest.
        batches = ContiguousBatches(
            tokens, batch_size, 1, prefix=prefix, vocabulary_size=vocabulary_size
        )
        self.batch_size = batch_size
        self.base = base
        self.prefix = prefix
        self.seed = seed
        self.num_targets = batches.num_targets
        self._rows, self._row_lengths = batches.rows, batches.row_lengths
        self._lengths = _lengths(
            batches.steps, base, seed, short_share, deviation, least, most
        )
        self.steps = len(self._lengths)

    def lengths(self, epoch: int) -> np.ndarray:
        """Returns the lengths of an epoch's windows, int32 `[steps]`."""
        return self._ordered(tf.constant(epoch, tf.int64)).numpy()

    def of_places(self) -> VariableWindows:
        """Returns windows whose tokens are the places `0 .. N-1` of these."""
        found = copy.copy(self)
        places = np.arange(self.num_targets, dtype=np.int32)
        found._rows = ContiguousBatches(places, self.batch_size, 1, prefix=0).rows
        return found

    def dataset(self, epoch: Any = 0, start_step: Any = 0) -> tf.data.Dataset:
        """Returns the elements `((tokens, start), next_tokens, weights)` of an epoch.

        Args:
            epoch: Integer scalar.
            start_step: Step of the first element.
        """
        lengths = self._ordered(tf.cast(epoch, tf.int64))
        firsts = tf.cumsum(lengths, exclusive=True)
        rows = host_tensor(self._rows)
        limits = host_tensor(self._row_lengths)[:, tf.newaxis]

        def element(step: tf.Tensor) -> Element:
            first, length = firsts[step], lengths[step]
            block = tf.slice(rows, [0, first], [self.batch_size, length + 1])
            block.set_shape([self.batch_size, None])
            positions = first + tf.range(length)
            starts = tf.cast(tf.equal(step, 0), tf.int32)
            return (
                (block[:, :-1], tf.fill([self.batch_size], starts)),
                block[:, 1:],
                tf.cast(positions < limits, tf.float32),
            )

        steps = tf.data.Dataset.range(start_step, self.steps)
        return steps.map(
            element, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True
        ).prefetch(tf.data.AUTOTUNE)

    def _ordered(self, epoch: tf.Tensor) -> tf.Tensor:
        seed = tf.stack([tf.constant(self.seed, tf.int64), epoch])
        shuffle = tf.random.experimental.stateless_shuffle
        return shuffle(host_tensor(self._lengths), seed)


def _lengths(
    total: int,
    base: int,
    seed: int,
    short_share: float,
    deviation: float,
    least: int,
    most: int,
) -> np.ndarray:
    """Returns lengths that add up to `total`, int32."""
    rng = np.random.default_rng(seed)
    found: list[int] = []
    left = total
    while left > 0:
        centre = base / 2 if rng.uniform() < short_share else base
        length = int(np.clip(int(rng.normal(centre, deviation)), least, most))
        found.append(min(length, left))
        left -= found[-1]
    return np.array(found, np.int32)
