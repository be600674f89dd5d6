"""One bias of attention for each head and bucket of relative positions."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_range
from rlm_tf.layers.transformer.position_buckets import (
    BucketRule,
    relative_position_buckets,
)

# How much less a head that looks to one side begins to see of the other.
_OTHER_SIDE = 2.0


@keras.saving.register_keras_serializable("rlm_tf")
class PositionBias(keras.layers.Layer):
    """Looks up what is added to scores, by how far a key is behind its query.

    All layers of a network share it (Raffel et al. 2020, arXiv 1910.10683).

    Args:
        num_heads: H.
        num_buckets: See `relative_position_buckets`, as the next two.
        max_distance: Likewise.
        variant: Likewise.
        initializer: Of the table `[buckets, H]`.
        slope: If positive, the table begins with heads that look at their neighbours,
            those of even numbers at tokens before, the others at tokens behind: what
            the initializer gives, less `slope` for each token between and, for tokens
            of the other side and the query's own, 2 more. Adam moves a bias by its
            rate at most, so that from equal ones it takes thousands of steps to see
            places at all.
        **kwargs: Of `keras.layers.Layer`.
    """

    def __init__(
        self,
        num_heads: int,
        *,
        num_buckets: int = 32,
        max_distance: int = 128,
        variant: BucketRule = "t5",
        initializer: Any = "zeros",
        slope: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_range(type(self).__name__, 0.0, 100.0, slope=slope)
        self.num_heads = num_heads
        self.num_buckets = num_buckets
        self.max_distance = max_distance
        self.variant = variant
        self.initializer = keras.initializers.get(initializer)
        self.slope = slope
        buckets = relative_position_buckets(
            np.arange(-max_distance, max_distance + 1),
            num_buckets=num_buckets,
            max_distance=max_distance,
            variant=variant,
        )
        self._buckets = buckets - buckets.min()

    def build(self, input_shape: Any = None) -> None:
        self.table = self.add_weight(
            name="table",
            shape=(self.num_buckets, self.num_heads),
            initializer=self.initializer,
        )
        if self.slope:
            self.table.assign_add(tf.cast(self._neighbours(), self.table.dtype))
        self.built = True

    def _neighbours(self) -> np.ndarray:
        """Returns what makes heads look at neighbours of one side, `[buckets, H]`."""
        relative = np.arange(-self.max_distance, self.max_distance + 1)
        sizes = np.bincount(self._buckets, minlength=self.num_buckets)
        sums = np.bincount(self._buckets, relative, minlength=self.num_buckets)
        # Buckets that there are no distances of are never looked up.
        means = sums / np.maximum(sizes, 1)
        side = np.where(np.arange(self.num_heads) % 2, 1, -1)
        along = means[:, np.newaxis] * side
        far = -self.slope * np.abs(along)
        return np.where(along > 0, far + self.slope, far - _OTHER_SIDE)

    def call(self, places: tf.Tensor) -> tf.Tensor:
        """Returns the bias `[1, H, T, T]` of tokens at places int `[T]`."""
        relative = places - places[:, tf.newaxis]
        most = self.max_distance
        clipped = tf.clip_by_value(relative, -most, most) + most
        buckets = tf.gather(tf.constant(self._buckets), clipped)
        table = tf.cast(tf.convert_to_tensor(self.table), self.compute_dtype)
        return tf.transpose(tf.gather(table, buckets), [2, 0, 1])[tf.newaxis]

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "num_buckets": self.num_buckets,
            "max_distance": self.max_distance,
            "variant": self.variant,
            "initializer": keras.initializers.serialize(self.initializer),
            "slope": self.slope,
        }
