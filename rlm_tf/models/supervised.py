"""The term of labels, of classifiers whose outputs are logits."""

from __future__ import annotations

from typing import Any, NamedTuple

import keras
import tensorflow as tf

from rlm_tf.checks import check_running, check_shapes
from rlm_tf.models.given_logits import no_probabilities
from rlm_tf.numerics import at_least_single
from rlm_tf.objective_model.term import TermLoss

# Of a batch whose outputs are looked at: are they probabilities?
LEAST_ROWS = 4


class Supervised(NamedTuple):
    """What labels say of a batch.

    Attributes:
        logits: `[B, K]`, at least in single precision.
        labels: Int32 `[B]`; of probabilities the most probable.
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
    *,
    batches: str = "(x, labels)",
    smoothing: float = 0.0,
) -> Supervised:
    """Returns the cross-entropy of labels, and updates the accuracy.

    Args:
        name: Of the model; messages begin with it.
        logits: `[B, K]`.
        y: Labels, int `[B]` or `[B, 1]`, or probabilities of classes `[B, K]`.
        sample_weight: `[B]`, or None.
        accuracy: Is updated.
        batches: What is expected, for the message.
        smoothing: Share of each label that all classes have alike.

    Raises:
        ValueError: If there are no labels, shapes do not fit, outputs are probabilities
            or a label is out of range (the last two in a graph: InvalidArgumentError).
    """
    if y is None:
        raise ValueError(f"{name}: no labels; expected batches {batches}.")
    logits = no_probabilities(name, at_least_single(logits), LEAST_ROWS)
    given = tf.convert_to_tensor(y)
    if given.shape.rank == 2 and given.shape[1] == 1:
        given = given[:, 0]
    is_soft = given.dtype.is_floating and given.shape.rank == 2
    axes = "B K" if is_soft else "B"
    check_shapes(name, labels=(given, axes), logits=(logits, "B K"))
    classes = logits.shape[1]
    if is_soft:
        probs = tf.cast(given, logits.dtype)
        labels = tf.argmax(given, axis=1, output_type=tf.int32)
    else:
        labels = tf.cast(given, tf.int32)
    weights = sample_weight
    if weights is None:
        weights = tf.ones_like(labels, tf.float32)
    weights = tf.cast(weights, tf.float32)
    highest = tf.reduce_max(labels)
    known = check_running(
        (tf.reduce_min(labels) >= 0) & (highest < classes),
        f"{name}: labels must be in [0, {classes})",
        highest,
    )
    with tf.control_dependencies(known):
        labels = tf.identity(labels)
    if is_soft:
        loss = tf.nn.softmax_cross_entropy_with_logits(probs, logits)
    else:
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    if smoothing:
        uniform = -tf.reduce_mean(tf.nn.log_softmax(logits), axis=1)
        loss = (1 - smoothing) * loss + smoothing * uniform
    best = tf.argmax(logits, axis=-1, output_type=tf.int32)
    accuracy.update_state(tf.cast(best == labels, tf.float32), weights)
    return Supervised(logits, labels, weights, TermLoss(loss, weights))
