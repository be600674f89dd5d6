"""Which labels are taken, by what a probe has said."""

from __future__ import annotations

from typing import Literal

import numpy as np

from rlm_tf.labelling.selection import (
    normalised_loss_scores,
    select_by_learning_order,
    select_confident,
)
from rlm_tf.models.text_classifiers.stages import Said

Selection = Literal["all", "confident", "learning_order", "loss"]
SELECTIONS: tuple[Selection, ...] = ("all", "confident", "learning_order", "loss")


def selected_by(
    said: Said, labels: np.ndarray, select: Selection, fraction: float, per_class: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Returns scores of documents, and which are selected, bool `[N]`.

    Args:
        said: What the probe has said of N documents with labels.
        labels: int `[N]`.
        select: By what, but "all".
        fraction: Share that is selected.
        per_class: Whether of each class.
    """
    if select == "learning_order":
        chosen = select_by_learning_order(said.predictions, labels, fraction=fraction)
        # The earlier a document is learnt for the first time, the surer.
        right = said.predictions == labels
        first = np.where(right.any(axis=0), right.argmax(axis=0), len(right))
        return -first.astype(np.float64), chosen
    if select == "loss":
        scores = normalised_loss_scores(said.losses)
    else:
        scores = said.probs[np.arange(len(labels)), labels]
    return scores, select_confident(
        scores, labels, fraction=fraction, per_class=per_class
    )


def own_labels(probs: np.ndarray, others: np.ndarray, share: float) -> np.ndarray:
    """Returns predictions that are learnt from, int `[N]`, -1 of other documents.

    Args:
        probs: `[N, C]`, what a classifier says.
        others: bool `[N]`, documents that may be taken.
        share: Of those, of each predicted class, the surest.
    """
    best = np.where(others, probs.argmax(axis=1), -1)
    if not others.any():
        return best
    chosen = select_confident(probs.max(axis=1), best, fraction=share)
    return np.where(chosen, best, -1)
