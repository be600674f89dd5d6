"""The term of labels, of classifiers whose outputs are logits."""

from __future__ import annotations

from typing import Any, NamedTuple

import keras
import tensorflow as tf

from rlm_tf.checks import check_running, check_shapes
from rlm_tf.numerics import at_least_single
from rlm_tf.objective_model.term import TermLoss


class Supervised(NamedTuple):
    """What labels say of a batch.

    Attributes:
        logits: `[B, K]`, at least in single precision.
        labels: Int32 `[B]`.
        weights: `[B]`, float32.
        term: The cross-entropy.
    """

    logits: tf.Tensor
    labels: tf.Tensor
    weights: tf.Tensor
    term: TermLoss


def supervised(
    name: str,
    logits: tf.Tensor,
    y: Any,
    sample_weight: Any,
    accuracy: keras.metrics.Mean,
) -> Supervised:
    """Returns the cross-entropy of labels, and updates the accuracy.

    Args:
        name: Of the model; messages begin with it.
        logits: `[B, K]`.
        y: Labels, int `[B]` or `[B, 1]`.
        sample_weight: `[B]`, or None.
        accuracy: Is updated.

    Raises:
        ValueError: If there are no labels, shapes do not fit, or a label is out of
            range (in a graph an InvalidArgumentError).
    """
    if y is None:
        raise ValueError(f"{name}: no labels; expected batches (x, labels).")
    logits = at_least_single(logits)
    labels = tf.cast(tf.convert_to_tensor(y), tf.int32)
    if labels.shape.rank == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    check_shapes(name, logits=(logits, "B K"), labels=(labels, "B"))
    weights = sample_weight
    if weights is None:
        weights = tf.ones_like(labels, tf.float32)
    weights = tf.cast(weights, tf.float32)
    highest = tf.reduce_max(labels)
    known = check_running(
        (tf.reduce_min(labels) >= 0) & (highest < logits.shape[1]),
        f"{name}: labels must be in [0, {logits.shape[1]})",
        highest,
    )
    with tf.control_dependencies(known):
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    best = tf.argmax(logits, axis=-1, output_type=tf.int32)
    accuracy.update_state(tf.cast(best == labels, tf.float32), weights)
    return Supervised(logits, labels, weights, TermLoss(loss, weights))
