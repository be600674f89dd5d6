"""The mean of what a model has said of each example, epoch by epoch."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_integer, check_shapes
from rlm_tf.replicas import own_part, sum_of_parts
from rlm_tf.training.epoch_means import EpochMeans, summed
from rlm_tf.training.examples import checked_examples

# Examples whose means are computed at once.
_CHUNK = 8192


class Targets(NamedTuple):
    """What earlier epochs said of examples.

    Attributes:
        means: `[B, K]`, float32; zeros of an example that was never seen.
        counts: `[B]`, int32: the epochs in which it was seen (`variant="authors"`: the
            first one twice).
    """

    means: tf.Tensor
    counts: tf.Tensor


class TemporalEnsemble(EpochMeans):
    """Means of an example's predictions over finished epochs (Laine and Aila 2017).

    As chapter 2 of Dong (2025) has them: the plain mean of one prediction an epoch,
    counted by example, so that one that an epoch missed, or had twice, has the right
    mean; what it had twice in an epoch counts once, as its mean.

    The epoch that is going on is kept apart until `end_epoch()`. In memory all are
    variables, which checkpoints hold. With a `path` the means are memory-mapped files
    and the epoch that is going on is a log, of which checkpoints hold the length: after
    a kill, `resume()` cuts off what came after the checkpoint. A new object begins
    anew; what the folder has of earlier ones is removed when its first epoch ends, or
    by `resume()`. Each replica adds what it sees; all have the same means.

    Args:
        num_examples: N; ids are below it.
        num_classes: K.
        path: A folder; None: in memory.
        variant: `"thesis"`, or `"authors"`: the first epoch counts twice, as in the
            authors' code.

    Raises:
        ValueError: If a number is not positive, or the folder has something else.
    """

    def __init__(
        self,
        num_examples: int,
        num_classes: int,
        *,
        path: str | os.PathLike[str] | None = None,
        variant: str = "thesis",
    ) -> None:
        own = type(self).__name__
        check_integer(own, "num_examples", num_examples, 1)
        check_integer(own, "num_classes", num_classes, 1)
        value = (np.float32, (num_classes,))
        super().__init__("temporal_ensemble", num_examples, value, path, variant)
        self.num_examples = num_examples
        self.num_classes = num_classes
        if path is None:
            shape = [num_examples, num_classes]
            self._means = tf.Variable(tf.zeros(shape), trainable=False)
            self._sums = summed(shape, tf.float32)

    def targets(self, ids: Any) -> Targets:
        """Returns what finished epochs said of examples.

        Args:
            ids: Int `[B]`, in [0, N).

        Raises:
            ValueError: If ids are no vector of integers, or out of range (in a graph
                an InvalidArgumentError).
        """
        ids = self._checked("targets", ids)
        counts = tf.gather(self._counts, ids)
        if self._log is None:
            return Targets(tf.gather(self._means, ids), counts)
        means = tf.numpy_function(
            self._log.means_of, [ids, self._place], tf.float32, stateful=True
        )
        return Targets(tf.ensure_shape(means, [ids.shape[0], self.num_classes]), counts)

    def update(self, ids: Any, probs: Any) -> None:
        """Adds predictions of the epoch that is going on.

        Args:
            ids: Int `[B]`, in [0, N).
            probs: `[B, K]`; no gradient.

        Raises:
            ValueError: As `targets`, or if shapes do not fit.
        """
        ids = self._checked("update", ids)
        probs = tf.cast(tf.stop_gradient(tf.convert_to_tensor(probs)), tf.float32)
        check_shapes(
            f"{type(self).__name__}.update",
            ids=(ids, "B"),
            probs=(probs, f"B {self.num_classes}"),
        )
        once = tf.ones_like(ids, tf.int32)
        own_part(self._seen).scatter_add(tf.IndexedSlices(once, ids))
        if self._log is None:
            own_part(self._sums).scatter_add(tf.IndexedSlices(probs, ids))
            return
        written = tf.numpy_function(
            self._log.append, [ids, probs, self._place], tf.int64, stateful=True
        )
        self._length.assign_add(written)

    def end_epoch(self) -> None:
        """Adds the epoch to the means; between steps, outside of graphs."""
        seen = sum_of_parts(self._seen)
        after, share = self._shares(seen > 0)
        if self._log is None:
            sums = sum_of_parts(self._sums)
            means = self._means.numpy()
            for start in range(0, self.num_examples, _CHUNK):
                part = slice(start, start + _CHUNK)
                _add_epoch(means[part], sums[part], seen[part], share[part])
            self._means.assign(means)
            self._sums.assign(tf.zeros_like(sums))
        else:
            self._end_log(
                self._log,
                np.add.at,
                lambda means, sums, part: _add_epoch(
                    means, sums, seen[part], share[part]
                ),
            )
        self._begin_epoch(after)

    # === Parts ===

    def _checked(self, function: str, ids: Any) -> tf.Tensor:
        name = f"{type(self).__name__}.{function}"
        return checked_examples(name, ids, self.num_examples)


def _add_epoch(
    means: np.ndarray, sums: np.ndarray, seen: np.ndarray, share: np.ndarray
) -> None:
    """Adds an epoch's sums of predictions to means, in place."""
    epoch = sums / np.maximum(seen, 1)[:, np.newaxis]
    means += (epoch - means) * share[:, np.newaxis]
