"""Recent predictions, kept to enlarge the in-batch induced models of rare contexts."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from rlm_tf.checks import check_integer


class BankDraw(NamedTuple):
    """Entries of the bank that join groups of the batch.

    Attributes:
        features: `[R, D]`.
        groups: int32 `[R]`, ascending.
        counts: int32 `[G]`, entries for each group.
    """

    features: tf.Tensor
    groups: tf.Tensor
    counts: tf.Tensor


class PredictionBank(tf.Module):
    """The features and short contexts of the last positions, newest first.

    Features are what the output layer maps to logits; the predictions are computed anew
    with today's output layer, and get no gradient. It is neither a weight nor part of a
    `.keras` file; `tf.train.Checkpoint` keeps it, and every replica has its own.

    Args:
        size: Number of positions kept, C.
        width: Width of the features, D.
        dtype: Dtype of the features.

    Raises:
        ValueError: If `size` is not positive.
    """

    def __init__(self, size: int, width: int, dtype: str = "float32"):
        super().__init__(name="prediction_bank")
        check_integer("PredictionBank", "size", size, 1)
        self.size = size
        options = {
            "trainable": False,
            "synchronization": tf.VariableSynchronization.ON_READ,
            "aggregation": tf.VariableAggregation.ONLY_FIRST_REPLICA,
        }
        self.features = tf.Variable(
            tf.zeros([0, width], dtype), shape=[None, width], **options
        )
        self.keys = tf.Variable(tf.zeros([0], tf.int64), shape=[None], **options)

    def draw(self, group_keys: tf.Tensor, needed: tf.Tensor) -> BankDraw:
        """Returns the newest entries for each group, at most `needed` of them.

        Args:
            group_keys: int64 `[G]`, distinct.
            needed: int32 `[G]`.
        """
        keys = tf.convert_to_tensor(self.keys)
        num_groups = tf.size(group_keys)
        order = tf.argsort(group_keys)
        # The sentinel is nobody's key; searches that find nothing end there.
        sorted_keys = tf.concat([tf.gather(group_keys, order), [tf.int64.max]], axis=0)
        place = tf.searchsorted(sorted_keys, keys)
        rows = tf.where(tf.equal(tf.gather(sorted_keys, place), keys))[:, 0]
        groups = tf.gather(order, tf.gather(place, rows))
        # Entries of a group, newest first; their rank is the distance to its start.
        by_group = tf.argsort(groups, stable=True)
        rows, groups = tf.gather(rows, by_group), tf.gather(groups, by_group)
        starts = tf.searchsorted(groups, tf.range(num_groups))
        rank = tf.range(tf.size(groups)) - tf.gather(starts, groups)
        wanted = rank < tf.gather(needed, groups)
        rows, groups = tf.boolean_mask(rows, wanted), tf.boolean_mask(groups, wanted)
        counts = tf.math.unsorted_segment_sum(tf.ones_like(groups), groups, num_groups)
        features = tf.gather(tf.convert_to_tensor(self.features), rows)
        return BankDraw(tf.stop_gradient(features), groups, counts)

    def write(self, features: tf.Tensor, keys: tf.Tensor) -> None:
        """Puts new entries in front and drops the oldest beyond `size`.

        Features that are not finite are left out. Those of weights that have been given
        up since, by going back to the best ones, stay until newer ones push them out.

        Args:
            features: `[N, D]`.
            keys: int64 `[N]`.
        """
        features = tf.cast(tf.stop_gradient(features), self.features.dtype)
        finite = tf.reduce_all(tf.math.is_finite(features), axis=1)
        features, keys = features[finite], keys[finite]
        old_features = tf.convert_to_tensor(self.features)
        old_keys = tf.convert_to_tensor(self.keys)
        self.features.assign(tf.concat([features, old_features], axis=0)[: self.size])
        self.keys.assign(tf.concat([keys, old_keys], axis=0)[: self.size])
