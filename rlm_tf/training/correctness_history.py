"""How often a model has been right about each example, epoch by epoch."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_integer, check_option, check_shapes
from rlm_tf.replicas import own_part, sum_of_parts
from rlm_tf.training.examples import checked_examples


class CorrectnessHistory(tf.Module):
    """The share of finished epochs in which an example was predicted right.

    What correctness ranking (Moon et al. 2020) compares confidences with. The epoch
    that is going on is kept apart until `end_epoch()`. All are variables, which
    checkpoints hold; each replica adds what it sees.

    Args:
        num_examples: N; ids are below it.
        variant: `"thesis"`: right / seen, by example. `"authors"`: as in their code,
            (right - least) / (epochs - least), of the epochs that are finished, at
            least one, and the least count of any example; where that is 0 / 0, which
            is no number there, 0.

    Raises:
        ValueError: If the number is not positive, or the variant unknown.
    """

    def __init__(self, num_examples: int, *, variant: str = "thesis") -> None:
        super().__init__(name="correctness_history")
        own = type(self).__name__
        check_integer(own, "num_examples", num_examples, 1)
        check_option(own, "variant", variant, ("thesis", "authors"))
        self.num_examples = num_examples
        self.variant = variant
        zeros = tf.zeros([num_examples, 2], tf.int32)
        # Times seen, and times right.
        self._past = tf.Variable(zeros, trainable=False)
        self._epochs = tf.Variable(0, trainable=False)
        self._now = tf.Variable(
            zeros,
            trainable=False,
            synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=tf.VariableAggregation.SUM,
        )

    def rates(self, ids: Any) -> tf.Tensor:
        """Returns the shares `[B]`, float32; 0 of examples that were never seen.

        Args:
            ids: Int `[B]`, in [0, N).

        Raises:
            ValueError: If ids are no vector of integers, or out of range (in a graph
                an InvalidArgumentError).
        """
        ids = self._checked("rates", ids)
        past = tf.cast(tf.convert_to_tensor(self._past), tf.float32)
        seen, right = tf.unstack(tf.gather(past, ids), axis=1)
        if self.variant == "thesis":
            return tf.math.divide_no_nan(right, seen)
        least = tf.reduce_min(past[:, 1])
        epochs = tf.maximum(tf.cast(tf.convert_to_tensor(self._epochs), tf.float32), 1)
        return tf.math.divide_no_nan(right - least, epochs - least)

    def update(self, ids: Any, right: Any) -> None:
        """Adds predictions of the epoch that is going on.

        Args:
            ids: Int `[B]`, in [0, N).
            right: Bool `[B]`.

        Raises:
            ValueError: As `rates`, or if shapes do not fit.
        """
        ids = self._checked("update", ids)
        right = tf.cast(right, tf.int32)
        check_shapes(
            f"{type(self).__name__}.update", ids=(ids, "B"), right=(right, "B")
        )
        counted = tf.stack([tf.ones_like(right), right], axis=1)
        own_part(self._now).scatter_add(tf.IndexedSlices(counted, ids))

    def end_epoch(self) -> None:
        """Adds the epoch to the past; between steps, outside of graphs."""
        now = sum_of_parts(self._now)
        # What an epoch had twice counts once, if it was right each time.
        seen = now[:, 0] > 0
        right = seen & (now[:, 1] == now[:, 0])
        self._past.assign_add(np.stack([seen, right], axis=1).astype(np.int32))
        self._epochs.assign_add(1)
        self._now.assign(tf.zeros_like(now))

    def _checked(self, function: str, ids: Any) -> tf.Tensor:
        name = f"{type(self).__name__}.{function}"
        return checked_examples(name, ids, self.num_examples)
