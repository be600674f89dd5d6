"""What objectives need of a language model, whatever Keras model it is."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from rlm_tf.models.batch import tokens_of
from rlm_tf.models.given_logits import token_logits
from rlm_tf.models.stateful_language_model import StatefulLanguageModel
from rlm_tf.numerics import at_least_single
from rlm_tf.objectives.in_batch import Groups
from rlm_tf.objectives.linear_in_batch import JointLoss, joint_of_logits


class LanguageModelView:
    """Runs any Keras model that maps tokens `[B, T]` to logits `[B, T, V]`.

    `outputs` are whatever the model's last expensive array is; the other methods take
    them. Here they are the logits. Such a model has no memory from window to window and
    ignores start flags.

    Args:
        model: The language model.
    """

    has_features = False

    def __init__(self, model: keras.Model):
        self.model = model

    def whole_logits(self, x: Any, training: bool) -> tf.Tensor:
        """Returns the logits `[B, T, V]` of one window, and lets a memory move on."""
        return token_logits(self.model, tokens_of(x), training)

    def outputs(self, x: Any, training: bool) -> tf.Tensor:
        """Returns the outputs of one window, and lets a memory move on."""
        return token_logits(self.model, tokens_of(x), training)

    def starting_states(self, x: Any) -> Any:
        """Returns the states from which training starts this window.

        Call it before `outputs`, which lets a memory move on.
        """
        return None

    def evaluation_outputs(self, x: Any, states: Any) -> tf.Tensor:
        """Returns the window's outputs in evaluation mode; no memory is written."""
        return token_logits(self.model, tokens_of(x), training=False)

    def last_logits(
        self, windows: tf.Tensor, last: tf.Tensor, states: Any = None
    ) -> tf.Tensor:
        """Returns logits after one position of each window, in evaluation mode.

        Args:
            windows: int `[W, L]`.
            last: int32 `[W]`, the position whose prediction is wanted.
            states: `[W, ...]`, where each window starts; None: zero states. Models
                without a memory ignore it.

        Returns:
            `[W, V]`.
        """
        logits = self.model(windows, training=False)
        return at_least_single(tf.gather(logits, last, batch_dims=1))

    def nll(self, outputs: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
        """Returns the negative log-likelihood `[B, T]` of targets in nats."""
        return tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=targets, logits=at_least_single(outputs)
        )

    def logits(self, outputs: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
        """Returns the logits `[M, V]` of flat positions `rows` `[M]`."""
        flat = tf.reshape(outputs, [-1, outputs.shape[-1]])
        return at_least_single(tf.gather(flat, rows))

    def joint(
        self, outputs: tf.Tensor, targets: tf.Tensor, groups: Groups
    ) -> JointLoss:
        """Returns negative log-likelihood `[B, T]` and induced loss `[G]` together."""
        return joint_of_logits(outputs, targets, groups)


class RecurrentView(LanguageModelView):
    """Runs a `StatefulLanguageModel`: its outputs are features before the softmax."""

    has_features = True

    def whole_logits(self, x: Any, training: bool) -> tf.Tensor:
        return self.model(x, training=training)

    def outputs(self, x: Any, training: bool) -> tf.Tensor:
        return self.model.features(x, training=training)

    def starting_states(self, x: Any) -> Any:
        if isinstance(x, tuple | list):
            return self.model.starting_states(x[1], training=True)
        return self.model.zero_states(tf.shape(x)[0], training=True)

    def evaluation_outputs(self, x: Any, states: Any) -> tf.Tensor:
        features, _ = self.model.forward(tokens_of(x), states, training=False)
        return features

    def last_logits(
        self, windows: tf.Tensor, last: tf.Tensor, states: Any = None
    ) -> tf.Tensor:
        if states is None:
            states = self.model.zero_states(tf.shape(windows)[0])
        features, _ = self.model.forward(windows, states, training=False)
        features = tf.gather(features, last, batch_dims=1)
        return at_least_single(self.model.output_logits(features))

    def nll(self, outputs: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
        return self.model.nll(outputs, targets)

    def logits(self, outputs: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
        flat = tf.reshape(outputs, [-1, outputs.shape[-1]])
        return at_least_single(self.model.output_logits(tf.gather(flat, rows)))

    def joint(
        self, outputs: tf.Tensor, targets: tf.Tensor, groups: Groups
    ) -> JointLoss:
        return self.model.joint_nll(outputs, targets, groups)


def view_of(model: keras.Model) -> LanguageModelView:
    """Returns the view that fits a language model."""
    if isinstance(model, StatefulLanguageModel):
        return RecurrentView(model)
    return LanguageModelView(model)
