"""Quantiles of whole numbers."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

_LARGEST = 1023


@keras.saving.register_keras_serializable("rlm_tf")
class Quantiles(keras.metrics.Metric):
    """Quantiles of the counts seen since the last reset.

    The result is a dictionary: `<name>_p50` is the smallest count that at least 50 % of
    all do not exceed. Counts above 1,023 are taken for 1,023; without any, the result
    is 0.

    Args:
        name: Prefix of the results' names.
        percentages: Which quantiles, in percent.
        dtype: Dtype or policy of the results.
    """

    def __init__(
        self,
        name: str = "count",
        percentages: tuple[int, ...] = (25, 50, 75),
        dtype: Any = None,
    ) -> None:
        super().__init__(name=name, dtype=dtype)
        self.percentages = tuple(percentages)
        self.histogram = self.add_variable(
            [_LARGEST + 1], "zeros", dtype="int64", name="histogram"
        )

    def update_state(self, counts: tf.Tensor) -> None:
        """Adds counts, int, any shape."""
        counts = tf.minimum(tf.cast(tf.reshape(counts, [-1]), tf.int32), _LARGEST)
        seen = tf.math.bincount(counts, minlength=_LARGEST + 1, dtype=tf.int64)
        self.histogram.assign_add(seen)

    def result(self) -> dict[str, tf.Tensor]:
        below = tf.cumsum(tf.convert_to_tensor(self.histogram))
        # In whole numbers: 25 % of 4 is 1, not 1.0000001.
        wanted = tf.constant(self.percentages, tf.int64) * below[-1]
        counts = tf.cast(tf.searchsorted(100 * below, wanted), self.dtype)
        return {
            f"{self.name}_p{percentage}": counts[index]
            for index, percentage in enumerate(self.percentages)
        }

    def get_config(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "percentages": self.percentages,
            "dtype": self.dtype,
        }
