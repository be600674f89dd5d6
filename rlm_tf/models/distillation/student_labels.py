"""What labels say of a student, where there are any."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from rlm_tf.distillation import Strategy
from rlm_tf.models.given_logits import no_probabilities
from rlm_tf.models.supervised import LEAST_ROWS, supervised
from rlm_tf.objective_model.term import TermLoss


class Labelled(NamedTuple):
    """What is known of a batch.

    Attributes:
        labels: Int32 `[B]`, or None.
        weights: `[B]`, float32.
        terms: The cross-entropy by its name, where there are labels.
    """

    labels: tf.Tensor | None
    weights: tf.Tensor
    terms: dict[str, TermLoss]


def with_labels(
    name: str,
    logits: tf.Tensor,
    y: Any,
    sample_weight: Any,
    accuracy: keras.metrics.Mean,
) -> Labelled:
    """Returns what labels say; arguments as of `supervised`."""
    found = supervised(name, logits, y, sample_weight, accuracy)
    return Labelled(found.labels, found.weights, {"cross_entropy": found.term})


def without_labels(
    name: str, strategies: Sequence[Strategy], logits: tf.Tensor, sample_weight: Any
) -> Labelled:
    """Returns what is known of a batch without labels.

    Raises:
        ValueError: If a strategy needs labels.
    """
    for strategy in strategies:
        if "labels" in strategy.needs:
            raise ValueError(
                f"{name}: {type(strategy).__name__} needs labels; expected batches "
                "(x, labels)."
            )
    logits = no_probabilities(name, logits, LEAST_ROWS)
    weights = tf.ones_like(logits[:, 0]) if sample_weight is None else sample_weight
    return Labelled(None, tf.cast(weights, tf.float32), {})
