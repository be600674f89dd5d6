"""How large gradients of either network's loss are, before anything is clipped."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from rlm_tf.models import Electra
from rlm_tf.objective_model.term import TermLoss
from rlm_tf.optimizers.part_owners import part_owners


class TermNorms(keras.callbacks.Callback):
    """Adds norms of gradients on one batch to the logs of every epoch.

    `norm_TERM_PART` is that of a weighted loss, "generator" or "discriminator", in the
    weights of a part; those that both networks have are of the part "shared". Nothing
    is trained, and what training draws stays as it would be.

    Args:
        batch: Of `Electra.fit`: tokens, masked tokens and positions.
    """

    def __init__(self, batch: tuple[tf.Tensor, ...]) -> None:
        super().__init__()
        self._batch = batch
        self._norms: Any = None

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if logs is None:
            return
        if self._norms is None:
            self._norms = tf.function(self._measure)
        # Seeds of draws and of dropout among them.
        kept = [(each, each.numpy()) for each in self.model.non_trainable_variables]
        logs |= {name: float(value) for name, value in self._norms().items()}
        for each, before in kept:
            each.assign(before)

    def _measure(self) -> dict[str, tf.Tensor]:
        model: Electra = self.model
        parts = variables_of_parts(model)
        with tf.GradientTape(persistent=True) as tape:
            terms = model.objective_terms(self._batch, None, None, training=True)
            losses = {name: _mean(term) for name, term in terms.items()}
            losses["discriminator"] *= model.discriminator_weight
        found = {}
        for term, loss in losses.items():
            for part, variables in parts.items():
                own = [v.value for v in variables]
                gradients = [g for g in tape.gradient(loss, own) if g is not None]
                if gradients:
                    found[f"norm_{term}_{part}"] = tf.linalg.global_norm(gradients)
        return found


def _mean(term: TermLoss) -> tf.Tensor:
    assert term.loss is not None
    weights = tf.cast(term.weights, term.loss.dtype)
    return tf.reduce_sum(term.loss * weights) / tf.reduce_sum(weights)


def variables_of_parts(model: Electra) -> dict[str, list[keras.Variable]]:
    """Returns the trainable weights of each part, and of both: "shared"."""
    owners = part_owners(model.parts)
    found: dict[str, list[keras.Variable]] = {}
    for variable in model.trainable_variables:
        found.setdefault(owners[id(variable)], []).append(variable)
    return found
