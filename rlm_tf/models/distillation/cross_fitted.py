"""Teachers each of which says what it has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from rlm_tf.checks import check_running
from rlm_tf.models.distillation.several_teachers import stacked_log_probs
from rlm_tf.numerics import log_mean_exp


def folds_of(num_examples: int, folds: int, seed: int = 0) -> np.ndarray:
    """Returns the fold of each example, int32 `[N]`, of sizes that differ by one."""
    order = np.random.default_rng(seed).permutation(num_examples)
    found = np.empty(num_examples, np.int32)
    found[order] = np.arange(num_examples) % folds
    return found


@keras.saving.register_keras_serializable("rlm_tf")
class CrossFittedTeacher(keras.layers.Layer):
    """K classifiers, each trained without one fold of the examples.

    What a teacher says of its own training examples is what it was told. Here each
    example is predicted by the classifier that did not see it. `Distillation` hands on
    ids, in batches `((x, ids), labels)`; called on inputs alone it is the mean of the
    probabilities.

    Args:
        models: The classifiers, in the order of folds; outputs are logits.
        folds: Int `[N]`, of each training example; see `folds_of`.
        **kwargs: Of `keras.layers.Layer`.

    Raises:
        ValueError: If folds are no integers in [0, K).
    """

    # What `Distillation` asks.
    takes_ids = True

    def __init__(
        self, models: Sequence[keras.Model], folds: npt.ArrayLike, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.models = list(models)
        own = np.asarray(folds)
        if (
            own.ndim != 1
            or not np.issubdtype(own.dtype, np.integer)
            or not len(own)
            or own.min() < 0
            or own.max() >= len(self.models)
        ):
            raise ValueError(
                f"{type(self).__name__}: `folds` must be integers [N] in [0, "
                f"{len(self.models)}), found {own.dtype} of shape {own.shape}."
            )
        self.folds = own.astype(np.int32).tolist()
        self.built = True

    def build(self, input_shape: Any = None) -> None:
        """Does nothing: the models have their weights."""

    def call(self, inputs: Any, training: bool = False) -> tf.Tensor:
        """Returns log-probabilities `[B, K]`.

        Args:
            inputs: x, or `(x, ids)`.
            training: Of the models.
        """
        x, ids = inputs if isinstance(inputs, tuple | list) else (inputs, None)
        found = stacked_log_probs(
            type(self).__name__, [model(x, training=training) for model in self.models]
        )
        if ids is None:
            return log_mean_exp(found)
        own_ids = tf.cast(ids, tf.int32)
        checked = check_running(
            tf.reduce_all((own_ids >= 0) & (own_ids < len(self.folds))),
            f"{type(self).__name__}: ids must be in [0, {len(self.folds)})",
            tf.reduce_max(tf.abs(own_ids)),
        )
        with tf.control_dependencies(checked):
            own = tf.gather(tf.constant(self.folds), own_ids)
        return tf.gather(tf.transpose(found, [1, 0, 2]), own, batch_dims=1)

    def get_config(self) -> dict[str, Any]:
        models = [keras.saving.serialize_keras_object(each) for each in self.models]
        return {**super().get_config(), "models": models, "folds": self.folds}

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: Any = None
    ) -> CrossFittedTeacher:
        """Returns the teacher of a config."""
        given = dict(config)
        models = [
            keras.saving.deserialize_keras_object(each, custom_objects)
            for each in given.pop("models")
        ]
        return cls(models, given.pop("folds"), **given)
