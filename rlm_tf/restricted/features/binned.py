"""A restricted model of one feature, fitted to pairs: counts in bins."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from rlm_tf.checks import check_integer
from rlm_tf.restricted.features.feature_model import FeatureModel
from rlm_tf.typing import TensorLike


@keras.saving.register_keras_serializable("rlm_tf")
class BinnedModel(FeatureModel):
    """`P(outcome | x)` for one feature in [low, high], from counts in equal bins.

    Each bin's probabilities are its counts plus `add`, normalised; between the centres
    of bins they are interpolated linearly, beyond the outermost ones they are constant.

    Args:
        num_bins: Bins.
        num_outcomes: Outcomes, V.
        low: Where the first bin begins.
        high: Where the last one ends; values outside count in the outermost bins.
        add: Added to every count, positive.

    Raises:
        ValueError: If a number is out of range.
    """

    def __init__(
        self,
        num_bins: int,
        num_outcomes: int = 2,
        low: float = -1.0,
        high: float = 1.0,
        add: float = 0.5,
        **kwargs: Any,
    ):
        super().__init__(1, num_outcomes, **kwargs)
        check_integer("BinnedModel", "num_bins", num_bins, 1)
        if not low < high or not add > 0:
            raise ValueError(
                "BinnedModel: `low` must be below `high` and `add` positive, found "
                f"{low}, {high} and {add}."
            )
        self.num_bins = num_bins
        self.low = float(low)
        self.high = float(high)
        self.add = float(add)
        self.table = self.add_weight(
            shape=(num_bins, num_outcomes),
            initializer=keras.initializers.Constant(1.0 / num_outcomes),
            trainable=False,
            name="probs",
        )
        self.built = True

    def fit(self, feature: npt.ArrayLike, outcomes: npt.ArrayLike) -> BinnedModel:
        """Counts pairs; returns itself.

        Args:
            feature: `[N]`.
            outcomes: int `[N]`, in [0, V).

        Raises:
            ValueError: If the arguments are no such pairs.
        """
        x, y = np.asarray(feature, np.float64), np.asarray(outcomes)
        if x.ndim != 1 or x.shape != y.shape or not np.all(np.isfinite(x)):
            raise ValueError(
                "BinnedModel.fit: `feature` and `outcomes` must be vectors of one "
                f"length and finite, found shapes {x.shape} and {y.shape}."
            )
        whole = np.issubdtype(y.dtype, np.integer)
        if not whole or (y.size and not 0 <= y.min() <= y.max() < self.num_outcomes):
            raise ValueError(
                "BinnedModel.fit: `outcomes` must be integers in "
                f"[0, {self.num_outcomes})."
            )
        place = (x - self.low) / (self.high - self.low) * self.num_bins
        bins = np.clip(np.floor(place), 0, self.num_bins - 1).astype(np.int64)
        counts = np.full((self.num_bins, self.num_outcomes), self.add)
        np.add.at(counts, (bins, y), 1.0)
        self.table.assign(counts / counts.sum(axis=1, keepdims=True))
        return self

    def log_probs(self, short_features: TensorLike) -> tf.Tensor:
        """Returns float32 `[N, V]` for the feature `[N, 1]`; see `FeatureModel`."""
        x = self._feature_matrix(short_features)[:, 0]
        place = (x - self.low) / (self.high - self.low) * self.num_bins - 0.5
        place = tf.cast(tf.clip_by_value(place, 0.0, self.num_bins - 1.0), tf.float32)
        below = tf.floor(place)
        share = (place - below)[:, tf.newaxis]
        first = tf.cast(below, tf.int32)
        second = tf.minimum(first + 1, self.num_bins - 1)
        table = tf.convert_to_tensor(self.table)
        mixed = (1 - share) * tf.gather(table, first) + share * tf.gather(table, second)
        return tf.math.log(mixed)

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        config.pop("num_features")
        config.update(
            num_bins=self.num_bins, low=self.low, high=self.high, add=self.add
        )
        return config
