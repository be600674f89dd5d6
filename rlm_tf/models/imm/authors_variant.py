"""What the published language-model code does and the paper's text does not say."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from rlm_tf.models.imm.matching import Matched, Matching, Window, has_all_samples
from rlm_tf.models.imm.short_contexts import short_contexts
from rlm_tf.models.language.batch import tokens_of
from rlm_tf.objective_model.term import TermLoss
from rlm_tf.restricted.restricted_model import RestrictedModel


class AuthorsVariant:
    """Soft targets between steps with k samples, and the odd embedding gradients.

    At steps without k samples the target is `(1 - gamma) onehot(y) + gamma p_cont`,
    with the missing mass and the continuation distribution of the Kneser-Ney bigram,
    and the model is the main pass itself, dropout on. Once IMM acts, the embedding gets
    twice the main gradient, and nothing of the k-sample gradient.

    Args:
        matching: What is matched.

    Raises:
        ValueError: If a restricted model is not a Kneser-Ney bigram.
    """

    def __init__(self, matching: Matching):
        self._matching = matching
        self._back_off_probs = [_back_off_probs(r) for r in matching.restricted_models]

    def soft_term(self, index: int, window: Window, main: Matched) -> TermLoss:
        """Returns the term of the steps without k samples, of weight 0 at the others.

        Args:
            index: Number of the restricted model.
            window: The batch.
            main: What the contexts gave of it.
        """
        weight = window.sample_weight
        weight = tf.ones_like(main.nll) if weight is None else weight
        sampled = has_all_samples(self._matching, window)
        soft = tf.logical_and(window.active, tf.logical_not(sampled))
        weights = tf.reshape(weight, [-1]) * tf.cast(soft, tf.float32)
        loss = self.soft_target_loss(index, main.outputs, window.inputs, main.nll)
        return TermLoss(loss, weights)

    def soft_target_loss(
        self, index: int, outputs: tf.Tensor, x: Any, nll: tf.Tensor
    ) -> tf.Tensor:
        """Returns the cross-entropy with the soft targets, `[B * T]`, nats.

        Args:
            index: Number of the restricted model.
            outputs: Outputs of the main pass.
            x: The batch's inputs.
            nll: `[B, T]`, of the main pass.
        """
        contexts = tf.reshape(short_contexts(tokens_of(x), 1), [-1])
        restricted = self._matching.restricted_models[index]
        missing = tf.cast(restricted.missing_mass(contexts), tf.float32)
        logits = self._matching.view.logits(outputs, tf.range(tf.size(contexts)))
        log_probs = tf.nn.log_softmax(logits)
        back_off = -tf.linalg.matvec(log_probs, self._back_off_probs[index])
        return (1 - missing) * tf.reshape(nll, [-1]) + missing * back_off


def _back_off_probs(restricted: RestrictedModel) -> tf.Tensor:
    if restricted.context_length != 1 or not hasattr(restricted, "continuation_probs"):
        raise ValueError(
            "InducedModelMatching: variant 'authors' needs Kneser-Ney bigrams, found "
            f"{type(restricted).__name__} with context length "
            f"{restricted.context_length}."
        )
    return tf.constant(restricted.continuation_probs, tf.float32)
