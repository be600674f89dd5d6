"""Small models that declare terms, parts, phases and frozen models."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from rlm_tf.models import ObjectiveModel, TermLoss, TermSpec
from rlm_tf.untracked import Untracked

FEATURES = 3


def dense(seed: int, units: int = 1, **options: Any) -> keras.layers.Dense:
    """Returns a built layer whose weights are those of a seed."""
    initializer = keras.initializers.RandomNormal(stddev=0.5, seed=seed)
    layer = keras.layers.Dense(units, kernel_initializer=initializer, **options)
    layer.build((None, FEATURES))
    return layer


@keras.saving.register_keras_serializable("tests")
class TwoParts(ObjectiveModel):
    """A generator fitted to y and a discriminator fitted to 2 y, both linear.

    The second term counts in phase 1 alone if `late`. A teacher, if there is one, gives
    the targets; it is no part of files.
    """

    def __init__(self, *, late: bool = False, specs: Any = None, **kwargs: Any):
        super().__init__(**kwargs)
        self.late = late
        self.specs = specs
        self.generator = dense(1)
        self.discriminator = dense(2)
        self.teacher = Untracked(None)
        self.seen: list[str] = []
        self.built = True

    @property
    def parts(self):
        return {"generator": [self.generator], "discriminator": [self.discriminator]}

    @property
    def frozen_models(self):
        return [] if self.teacher.value is None else [self.teacher.value]

    @property
    def term_specs(self):
        return self.specs or [
            TermSpec("first"),
            TermSpec("second", 0.5, phases=(1,) if self.late else None),
        ]

    def call(self, x: Any, training: bool = False) -> tf.Tensor:
        return self.generator(x) + self.discriminator(x)

    def objective_terms(self, x: Any, y: Any, sample_weight: Any, training: bool):
        terms = {}
        if self.teacher.value is not None:
            y = tf.stop_gradient(self.teacher.value(x))[:, 0]
        if self.term_counts("first", training):
            error = tf.cast(self.generator(x)[:, 0], tf.float32) - y
            terms["first"] = TermLoss(error**2, sample_weight)
        if self.term_counts("second", training):
            self.seen.append("second")
            error = tf.cast(self.discriminator(x)[:, 0], tf.float32) - 2 * y
            terms["second"] = TermLoss(error**2, sample_weight)
        return terms

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "late": self.late}


def batch(size: int = 8, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Returns features `[size, 3]` and targets `[size]`."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(size, FEATURES)).astype(np.float32)
    return x, rng.normal(size=size).astype(np.float32)


def data(steps: int = 4, size: int = 8) -> tf.data.Dataset:
    """Returns a data set of batches."""
    parts = [batch(size, seed) for seed in range(steps)]
    x, y = (np.concatenate(part) for part in zip(*parts, strict=True))
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(size)


def weights_of(model: keras.Model) -> np.ndarray:
    """Returns all weights as one vector."""
    return np.concatenate([np.ravel(weight) for weight in model.get_weights()])
