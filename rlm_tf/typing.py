"""Types shared by the objectives and the models."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import tensorflow as tf

TensorLike: TypeAlias = tf.Tensor | np.ndarray
Gradient: TypeAlias = tf.Tensor | tf.IndexedSlices | None


class LossOutput(NamedTuple):
    """What an objective returns.

    Attributes:
        loss: Per-position (or per-example) loss in nats, never reduced over the batch.
        extra: A NamedTuple with intermediate values worth logging or asserting.
    """

    loss: tf.Tensor
    extra: Any
