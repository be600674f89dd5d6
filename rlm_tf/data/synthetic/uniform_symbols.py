"""The synthetic task of latent-variable models: symbols that are equally likely."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from rlm_tf.checks import check_integer


class UniformSymbols:
    """Batches of symbols drawn uniformly (Melis 2023, section 5.7.1).

    One symbol is one example; the entropy is `ln V`. A batch is a function of the seed,
    the epoch and its step.

    Args:
        num_symbols: V.
        batch_size: B.
        steps: Batches of an epoch.
        seed: Of the draws.

    Raises:
        ValueError: If a number is not positive.
    """

    def __init__(
        self, num_symbols: int, batch_size: int, steps: int, seed: int = 0
    ) -> None:
        check_integer("UniformSymbols", "num_symbols", num_symbols, 1)
        check_integer("UniformSymbols", "batch_size", batch_size, 1)
        check_integer("UniformSymbols", "steps", steps, 1)
        self.num_symbols = num_symbols
        self.batch_size = batch_size
        self.steps = steps
        self.seed = seed

    def dataset(self, epoch: Any = 0, start_step: Any = 0) -> tf.data.Dataset:
        """Returns the batches int32 `[B]` of an epoch from a step on."""
        first = tf.cast(epoch, tf.int64) * self.steps
        numbers = tf.data.Dataset.range(
            first + tf.cast(start_step, tf.int64), first + self.steps
        )

        def draw(number: tf.Tensor) -> tf.Tensor:
            seed = tf.stack([tf.constant(self.seed, tf.int64), number])
            return tf.random.stateless_uniform(
                [self.batch_size], seed, maxval=self.num_symbols, dtype=tf.int32
            )

        return numbers.map(draw)
