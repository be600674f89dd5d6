"""What means over epochs have in common: counts, the epoch that goes on, its files."""

from __future__ import annotations

import os
import pathlib
import secrets
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_option
from rlm_tf.replicas import sum_of_parts
from rlm_tf.training.epoch_log import EpochLog


class EpochMeans(tf.Module):
    """Counts of examples over finished epochs, and the log of the one that goes on.

    Args:
        name: Of the module.
        num_examples: N.
        value: What is predicted of an example, as `EpochLog` has it.
        path: A folder; None: in memory.
        variant: `"thesis"`, or `"authors"`: the first epoch counts twice.

    Raises:
        ValueError: If the variant is unknown, or the folder has something else.
    """

    def __init__(
        self,
        name: str,
        num_examples: int,
        value: Any,
        path: str | os.PathLike[str] | None,
        variant: str,
    ) -> None:
        super().__init__(name=name)
        own = type(self).__name__
        check_option(own, "variant", variant, ("thesis", "authors"))
        self.path = None if path is None else str(path)
        self.variant = variant
        self._counts = tf.Variable(tf.zeros([num_examples], tf.int32), trainable=False)
        self._seen = summed([num_examples], tf.int32)
        self._log: EpochLog | None = None
        if path is None:
            return
        self._log = EpochLog(own, pathlib.Path(path), num_examples, value)
        # The run, whose files are its own, and the epoch.
        place = tf.constant([secrets.randbits(62), 0], tf.int64)
        self._place = tf.Variable(place, trainable=False)
        self._length = summed([], tf.int64)

    def resume(self) -> None:
        """Goes on from what a checkpoint has put into the variables.

        Raises:
            ValueError: If the files of `path` do not reach as far as the checkpoint.
        """
        if self._log is not None:
            self._log.resume(self._place.numpy(), int(sum_of_parts(self._length)))

    # === For subclasses ===

    def _shares(self, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns counts after the epoch, and its share in the mean of each example.

        Args:
            seen: Bool `[N]`.
        """
        before = self._counts.numpy()
        weight = np.where((before == 0) & (self.variant == "authors"), 2, 1)
        after = np.where(seen, before + weight, before).astype(np.int32)
        share = np.where(seen, weight / np.maximum(after, 1), 0).astype(np.float32)
        return after, share

    def _end_log(
        self,
        log: EpochLog,
        collect: Callable[[np.ndarray, np.ndarray, np.ndarray], None],
        add: Callable[[np.ndarray, np.ndarray, slice], None],
    ) -> None:
        """Writes the means before the next epoch; arguments as `EpochLog.end`."""
        log.end(self._place.numpy(), int(sum_of_parts(self._length)), collect, add)
        self._place.assign_add([0, 1])
        self._length.assign(0)

    def _begin_epoch(self, counts: np.ndarray) -> None:
        """Begins the next epoch, with counts `[N]` of those before it."""
        self._counts.assign(counts)
        self._seen.assign(tf.zeros_like(self._seen))


def summed(shape: Sequence[int], dtype: tf.DType) -> tf.Variable:
    """Returns zeros of which each replica has its own, to be added up."""
    return tf.Variable(
        tf.zeros(shape, dtype),
        trainable=False,
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.SUM,
    )
