"""Predictions that there are, as contexts of a batch ask for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from rlm_tf.models.encoders.masked_language_model import MaskedLanguageModel
from rlm_tf.objectives.cross_entropy_with_imm import (
    JointLosses,
    cross_entropy_with_imms,
)
from rlm_tf.objectives.in_batch import Groups


class GivenPredictions:
    """What contexts of a batch ask of a model, of predictions that there are.

    Args:
        model: The masked language model.
        features: What its softmax reads, `[N, E]`.
    """

    has_features = True

    def __init__(self, model: MaskedLanguageModel, features: tf.Tensor) -> None:
        self.model = self
        self.training_feature_width = model.encoder.embedding.width
        self.compute_dtype = model.compute_dtype
        self._model = model
        self._features = features

    def outputs(self, inputs: Any, training: bool) -> tf.Tensor:
        return self._features[:, tf.newaxis]

    def starting_states(self, inputs: Any) -> None:
        """Returns nothing: predictions follow none."""

    def evaluation_outputs(self, inputs: Any, states: Any) -> tf.Tensor:
        # They were made without dropout then.
        return self._features[:, tf.newaxis]

    def logits(self, outputs: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
        flat = tf.reshape(outputs, [-1, self.training_feature_width])
        return self._model.logits(tf.gather(flat, rows))

    def nll(self, outputs: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
        return tf.zeros(tf.shape(targets))

    def joint(
        self, outputs: tf.Tensor, targets: tf.Tensor, several: Sequence[Groups]
    ) -> JointLosses:
        flat = tf.reshape(outputs, [-1, self.training_feature_width])
        targets = tf.reshape(targets, [-1])
        return cross_entropy_with_imms(self._model.logits(flat), targets, several)
