"""What the processes of a strategy tell each other between steps.

`rlm_tf.replicas` is for the inside of a step. Of several processes every one runs the
same program, callbacks included; all have to call what is here in the same order.
"""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterator, Sequence

import numpy as np
import tensorflow as tf

# What the others see when a process has ended.
_LOST = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
    tf.errors.InternalError,
)


class Workers:
    """The processes of a strategy, of which this is one.

    Args:
        strategy: Any; all but `MultiWorkerMirroredStrategy` have one process.

    Attributes:
        number: How many processes there are.
        index: Number of this one, from 0.
        replicas: Number of replicas of all processes.
    """

    def __init__(self, strategy: tf.distribute.Strategy) -> None:
        self._strategy = strategy
        self.number, self.index = 1, 0
        self.replicas = int(strategy.num_replicas_in_sync)
        if isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
            resolver = strategy.cluster_resolver
            self.number = max(1, resolver.cluster_spec().num_tasks("worker"))
            self.index = int(resolver.task_id or 0)

    @property
    def are_several(self) -> bool:
        """Whether there is another process."""
        return self.number > 1

    @property
    def is_chief(self) -> bool:
        """Whether this is the process that writes what all share."""
        return self.index == 0

    @property
    def local_replicas(self) -> range:
        """The numbers of this process's replicas among those of all."""
        own = self.replicas // self.number
        return range(self.index * own, (self.index + 1) * own)

    def total(self, values: Sequence[float]) -> list[float]:
        """Returns sums over the processes, the same on all.

        Args:
            values: As many on every process.
        """
        if not self.are_several:
            return list(values)
        # What a process says, its first replica says.
        first = self.local_replicas[0]
        given = tf.constant(values, tf.float64)

        def share() -> tf.Tensor:
            context = tf.distribute.get_replica_context()
            number = tf.cast(context.replica_id_in_sync_group, tf.int32)
            return tf.where(tf.equal(number, first), given, tf.zeros_like(given))

        with lost_worker_named():
            shares = self._strategy.run(share)
            total = self._strategy.reduce("SUM", shares, axis=None)
        return np.asarray(total).tolist()

    def any(self, *flags: bool) -> list[bool]:
        """Returns for each flag whether it is set on some process."""
        return [total > 0 for total in self.total([float(flag) for flag in flags])]

    def chiefs(self, value: int) -> int:
        """Returns the chief's value, an integer below 2^53."""
        return int(self.total([float(value) if self.is_chief else 0.0])[0])

    def wait(self) -> None:
        """Waits until every process is here."""
        if self.are_several:
            self.total([0.0])


def data_sharing() -> tf.data.Options:
    """Returns the options of data sets whose batches workers share."""
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = (
        tf.data.experimental.AutoShardPolicy.DATA
    )
    return options


@contextlib.contextmanager
def lost_worker_named() -> Iterator[None]:
    """Turns what TensorFlow says when another process has ended into one line.

    Raises:
        ConnectionAbortedError: In place of it.
    """
    try:
        yield
    except _LOST as error:
        if not _is_of_workers(str(error)):
            raise
        # A pool of threads would stay in one of them, and complain when Python ends.
        traceback.clear_frames(error.__traceback__)
        raise ConnectionAbortedError(
            "Another worker of the strategy has ended or cannot be reached; this one "
            "ends, too. Start all of them again: with checkpoints of `ExactResume` "
            "they go on from the last."
        ) from None


def _is_of_workers(message: str) -> bool:
    lower = message.lower()
    return any(word in lower for word in ("collective", "/job:worker", "grpc"))
