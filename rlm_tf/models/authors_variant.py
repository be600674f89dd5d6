"""What the published language-model code does and the paper's text does not say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from rlm_tf.models.batch import tokens_of
from rlm_tf.models.short_contexts import short_contexts
from rlm_tf.restricted.restricted_model import RestrictedModel

if TYPE_CHECKING:
    from rlm_tf.models.induced_model_matching import InducedModelMatching


class AuthorsVariant:
    """Soft targets between steps with k samples, and the odd embedding gradients.

    At steps without k samples the target is `(1 - gamma) onehot(y) + gamma p_cont`,
    with the missing mass and the continuation distribution of the Kneser-Ney bigram,
    and the model is the main pass itself, dropout on. Once IMM acts, the embedding gets
    twice the main gradient, and nothing of the k-sample gradient.

    Args:
        owner: The wrapper.

    Raises:
        ValueError: If a restricted model is not a Kneser-Ney bigram.
    """

    def __init__(self, owner: InducedModelMatching):
        self.owner = owner
        self._back_off_probs = [_back_off_probs(r) for r in owner.restricted_models]

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
        restricted = self.owner.restricted_models[index]
        missing = tf.cast(restricted.missing_mass(contexts), tf.float32)
        logits = self.owner.view.logits(outputs, tf.range(tf.size(contexts)))
        log_probs = tf.nn.log_softmax(logits)
        back_off = -tf.linalg.matvec(log_probs, self._back_off_probs[index])
        return (1 - missing) * tf.reshape(nll, [-1]) + missing * back_off

    def main_factor(self, variable: Any) -> float | tf.Tensor:
        """Returns what the main gradient of a variable is multiplied by."""
        if not self._is_embedding(variable):
            return 1.0
        return 1.0 + tf.cast(self.owner.active, tf.float32)

    def sampled_factor(self, variable: Any) -> float:
        """Returns what the k-sample gradient of a variable is multiplied by."""
        return 0.0 if self._is_embedding(variable) else 1.0

    def _is_embedding(self, variable: Any) -> bool:
        embedding = getattr(self.owner.model, "embedding", None)
        weights = [] if embedding is None else embedding.weights
        return any(variable is weight for weight in weights)


def _back_off_probs(restricted: RestrictedModel) -> tf.Tensor:
    if restricted.context_length != 1 or not hasattr(restricted, "continuation_probs"):
        raise ValueError(
            "InducedModelMatching: variant 'authors' needs Kneser-Ney bigrams, found "
            f"{type(restricted).__name__} with context length "
            f"{restricted.context_length}."
        )
    return tf.constant(restricted.continuation_probs, tf.float32)
