"""Epochs of any length over passes of any other."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from rlm_tf.checks import check_integer


class Looks:
    """Cuts endless passes over a source into epochs of so many steps.

    Where training is a number of steps and not of passes, an epoch is what lies between
    two looks at held-out text. Passes follow one another without a gap, each in its own
    order.

    Used as `ResumableBatches(Looks(Segments(...), 500), transform=...)`
    (`rlm_tf.training`).

    Args:
        source: With `steps`, and `dataset(epoch, start_step)`, such as `Segments`.
        steps: Of an epoch.

    Raises:
        ValueError: If `steps` is not positive.
    """

    def __init__(self, source: Any, steps: int) -> None:
        check_integer(type(self).__name__, "steps", steps, 1)
        self.source = source
        self.steps = steps

    def dataset(self, epoch: Any = 0, start_step: Any = 0) -> tf.data.Dataset:
        """Returns the batches of an epoch from a step on."""
        start = tf.cast(start_step, tf.int64)
        done = tf.cast(epoch, tf.int64) * self.steps + start
        first, within = done // self.source.steps, done % self.source.steps

        def one_pass(number: tf.Tensor) -> tf.data.Dataset:
            begin = tf.where(tf.equal(number, first), within, tf.zeros_like(within))
            return self.source.dataset(number, begin)

        passes = tf.data.Dataset.range(first, tf.int64.max)
        return passes.flat_map(one_pass).take(self.steps - start)
