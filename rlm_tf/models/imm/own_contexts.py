"""Every position as its own induced model: the noising loss of Eq. (16)."""

from __future__ import annotations

import weakref

import keras
import tensorflow as tf

from rlm_tf.models.imm.matching import Induced, Matched, Matching, Window
from rlm_tf.models.imm.short_contexts import position_weights, short_contexts
from rlm_tf.models.language.batch import tokens_of
from rlm_tf.objectives.soft_targets import cross_entropy_with_soft_targets
from rlm_tf.restricted.restricted_model import RestrictedModel
from rlm_tf.restricted.sparse_probs import SparseProbs

# Contexts of one word that are rows over all words. On Penn Treebank the 32 that most
# words follow have 93 % of the entries that positions need: 1,263 each, then 82.
_LONG_ROWS = 32


class OwnContexts(tf.Module):
    """The extended context of a position is the one that it has, and no other.

    So no predictions are averaged: each is pulled towards what the restricted model
    says of its short context, which is the noising loss of Eq. (16) and what knowledge
    distillation trains on, with an n-gram as the teacher. The full model is told to
    ignore what the restricted one cannot see; with a restricted model that sees nearly
    as much, such as an n-gram of order 5, there is little of that.

    What a Kneser-Ney model says differs from its unigrams in few words, which is what
    a step costs: no row over all words is made.

    Args:
        separate_clipping: Whether the gradients of the main loss and of this one are
            clipped each on its own, at the price of a backward pass, or together.
    """

    brings_gradient = False

    def __init__(self, *, separate_clipping: bool = False) -> None:
        super().__init__(name="own_contexts")
        self.separate_clipping = separate_clipping
        self.owner: weakref.ref[keras.Model] | None = None
        self._sparse: list[bool] = []

    def prepare(self, matching: Matching) -> None:
        """Finds what is sparse; called by the wrapper.

        Raises:
            ValueError: If the wrapper asks for what only sampled contexts do.
        """
        how = (matching.gradient, matching.every, matching.variant)
        if how != ("direct", 1, "paper"):
            raise ValueError(
                "InducedModelMatching: `gradient`, `every` and `variant` other than "
                "their defaults belong to SampledContexts; OwnContexts have one pass, "
                "at every step."
            )
        self._sparse = [
            restricted.has_sparse_probs() for restricted in matching.restricted_models
        ]

    def match(self, matching: Matching, window: Window) -> Matched:
        """Runs the model on a batch and returns how far it is from the restricted."""
        view, tokens = matching.view, tokens_of(window.inputs)
        outputs = view.outputs(window.inputs, training=True)
        nll = None
        found = []
        for index, restricted in enumerate(matching.restricted_models):
            probs = self._distributions(index, restricted, tokens)
            if index == 0 and not self.separate_clipping:
                nll, soft = view.joint_soft(outputs, window.targets, probs)
            else:
                every = tf.range(tf.size(tokens))
                soft = cross_entropy_with_soft_targets(
                    view.logits(outputs, every),
                    tf.reshape(window.targets, [-1]),
                    probs,
                ).soft
            weights = position_weights(
                tokens, restricted.context_length, window.sample_weight
            )
            alone = tf.ones_like(tf.where(weights > 0)[:, 0], tf.int32)
            found.append(Induced(soft, weights, alone, 1))
        if nll is None:
            nll = view.nll(outputs, window.targets)
        return Matched(nll, outputs, found)

    def _distributions(
        self, index: int, restricted: RestrictedModel, tokens: tf.Tensor
    ) -> tf.Tensor | SparseProbs:
        length = restricted.context_length
        contexts = short_contexts(tokens, length)
        flat = tf.reshape(contexts, [tf.size(tokens), length])
        if self._sparse[index]:
            return restricted.sparse_probs(flat, long_rows=_LONG_ROWS)
        return restricted.probs(flat[:, 0] if length == 1 else flat)
