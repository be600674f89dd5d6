"""Cross-entropy and in-batch IMM of one softmax, from logits or a linear map."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from rlm_tf.numerics import at_least_single
from rlm_tf.objectives.in_batch import (
    Groups,
    Pool,
    by_group,
    check_groups,
    grouped_induced_cross_entropy,
)
from rlm_tf.objectives.linear_softmax import (
    exponentials_of,
    linear_operands,
    logits_of,
    pull_back,
)
from rlm_tf.objectives.soft_targets import SoftTargets, soft_cross_entropy


class JointLoss(NamedTuple):
    """Both losses of one batch.

    Attributes:
        cross_entropy: `[N]`, nats, of the targets.
        induced: `[G]`, nats, of the groups' induced models.
    """

    cross_entropy: tf.Tensor
    induced: tf.Tensor


class SplitJointLoss(NamedTuple):
    """The same where groups have rows on their own.

    Attributes:
        cross_entropy: As in `JointLoss`.
        induced: As in `JointLoss`.
        alone: `[N]`, nats, of the rows on their own; 0 in others.
    """

    cross_entropy: tf.Tensor
    induced: tf.Tensor
    alone: tf.Tensor


def cross_entropy_with_imm(
    logits: tf.Tensor, targets: tf.Tensor, groups: Groups
) -> JointLoss | SplitJointLoss:
    """Returns both losses of logits `[..., V]`; `cross_entropy` is `[...]`.

    Args:
        logits: `[..., V]`.
        targets: Int `[...]`.
        groups: The groups of the flat positions of `logits`.
    """
    logits = at_least_single(logits)
    cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=targets, logits=logits
    )
    flat = tf.reshape(logits, [-1, logits.shape[-1]])
    own = groups._replace(rows=tf.range(tf.size(groups.rows)))
    induced = grouped_induced_cross_entropy(tf.gather(flat, groups.rows), own).loss
    if groups.alone is None:
        return JointLoss(cross_entropy, induced)
    alone = soft_cross_entropy(flat, groups.alone)
    return SplitJointLoss(cross_entropy, induced, alone)


def linear_cross_entropy_with_imm(
    features: tf.Tensor,
    kernel: tf.Tensor,
    bias: tf.Tensor | None,
    targets: tf.Tensor,
    groups: Groups,
) -> JointLoss | SplitJointLoss:
    """Returns both losses of `softmax(features kernel^T + bias)` in one softmax.

    Equal, in value and in gradient, to `linear_cross_entropy` and to
    `grouped_induced_cross_entropy` of the logits. As there, one `[N, V]` array is kept,
    `e = exp(z - max z)`; the backward pass overwrites the groups' rows of it and then
    multiplies it once with the kernel and once with the features, as it would without
    IMM.

    Args:
        features: `[N, D]`.
        kernel: `[V, D]`, dtype of `features`.
        bias: `[V]` or None.
        targets: int `[N]`.
        groups: The groups of the rows of `features`.

    Raises:
        ValueError: If shapes do not fit.
        TypeError: If `features` or `kernel` is not floating point.
    """
    name = "linear_cross_entropy_with_imm"
    operands = linear_operands(name, features, kernel, bias)
    check_groups(name, groups, targets=(targets, "N"), **operands)
    groups = by_group(groups)

    @tf.custom_gradient
    def loss(x: tf.Tensor, kernel: tf.Tensor, *biases: tf.Tensor) -> Any:
        logits = logits_of(x, kernel, biases)
        soft = None
        if groups.alone is not None:
            soft = SoftTargets(x, kernel, biases, groups.alone, logits)
        found = exponentials_of(logits, targets)
        e, s, log_partition, target_logits = found

        def member_log_probs() -> tf.Tensor:
            logits = logits_of(tf.gather(x, groups.rows), kernel, biases)
            return logits - tf.gather(log_partition, groups.rows)[:, tf.newaxis]

        pool = Pool(
            groups,
            tf.gather(e, groups.rows),
            member_log_probs,
            scales=tf.gather(s, groups.rows),
        )

        def gradient(
            g: tf.Tensor, induced_gradient: tf.Tensor, *alone: tf.Tensor
        ) -> list[tf.Tensor]:
            values, scales = e, g
            if soft is not None:
                g, h = tf.convert_to_tensor(g), tf.convert_to_tensor(alone[0])
                values, scales = soft.subtracted(e, s, g, h)
            rows = groups.rows[:, tf.newaxis]
            shift = tf.gather(g, groups.rows)
            members = pool.shifted_cotangent(induced_gradient, shift)
            # Rows of a group then hold their whole gradient but for 1/s.
            gradients = pull_back(
                x,
                kernel,
                biases,
                targets,
                values=tf.tensor_scatter_nd_update(values, rows, members),
                sums=s,
                scales=tf.tensor_scatter_nd_update(scales, rows, tf.ones_like(shift)),
                target_gradients=g,
            )
            return gradients if soft is None else soft.without_bases(gradients, h)

        losses = (log_partition - target_logits, pool.loss)
        return (
            losses if soft is None else (*losses, soft.loss(found)),
            gradient,
        )

    found = loss(features, kernel, *([] if bias is None else [bias]))
    return JointLoss(*found) if groups.alone is None else SplitJointLoss(*found)
