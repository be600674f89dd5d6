"""Cross-entropy and in-batch IMM of one softmax, from logits or a linear map."""

from __future__ import annotations

from collections.abc import Sequence
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
    Exponentials,
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


class JointLosses(NamedTuple):
    """The same of several restricted models, each with groups of its own.

    Attributes:
        cross_entropy: As in `JointLoss`.
        induced: As in `JointLoss`, one for each.
        alone: As in `SplitJointLoss`, one for each, None where it has none.
    """

    cross_entropy: tf.Tensor
    induced: list[tf.Tensor]
    alone: list[tf.Tensor | None]

    def of_one(self) -> JointLoss | SplitJointLoss:
        """Returns the losses of the only restricted model."""
        (induced,), (alone,) = self.induced, self.alone
        if alone is None:
            return JointLoss(self.cross_entropy, induced)
        return SplitJointLoss(self.cross_entropy, induced, alone)


def cross_entropy_with_imm(
    logits: tf.Tensor, targets: tf.Tensor, groups: Groups
) -> JointLoss | SplitJointLoss:
    """Returns both losses of logits `[..., V]`; `cross_entropy` is `[...]`.

    Args:
        logits: `[..., V]`.
        targets: Int `[...]`.
        groups: The groups of the flat positions of `logits`.
    """
    return cross_entropy_with_imms(logits, targets, [groups]).of_one()


def cross_entropy_with_imms(
    logits: tf.Tensor, targets: tf.Tensor, several: Sequence[Groups]
) -> JointLosses:
    """Returns the same of several restricted models, each with its groups."""
    logits = at_least_single(logits)
    cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=targets, logits=logits
    )
    flat = tf.reshape(logits, [-1, logits.shape[-1]])
    induced = []
    for groups in several:
        own = groups._replace(rows=tf.range(tf.size(groups.rows)))
        members = tf.gather(flat, groups.rows)
        induced.append(grouped_induced_cross_entropy(members, own).loss)
    alone = [
        None if groups.alone is None else soft_cross_entropy(flat, groups.alone)
        for groups in several
    ]
    return JointLosses(cross_entropy, induced, alone)


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
    return _linear(name, features, kernel, bias, targets, [groups]).of_one()


def linear_cross_entropy_with_imms(
    features: tf.Tensor,
    kernel: tf.Tensor,
    bias: tf.Tensor | None,
    targets: tf.Tensor,
    several: Sequence[Groups],
) -> JointLosses:
    """Returns the same of several restricted models, all in one softmax.

    Args:
        features: `[N, D]`.
        kernel: `[V, D]`, dtype of `features`.
        bias: `[V]` or None.
        targets: int `[N]`.
        several: Of each the groups of the rows of `features`.

    Raises:
        ValueError: If shapes do not fit.
        TypeError: If `features` or `kernel` is not floating point.
    """
    name = "linear_cross_entropy_with_imms"
    return _linear(name, features, kernel, bias, targets, several)


def _linear(
    function: str,
    features: tf.Tensor,
    kernel: tf.Tensor,
    bias: tf.Tensor | None,
    targets: tf.Tensor,
    several: Sequence[Groups],
) -> JointLosses:
    operands = linear_operands(function, features, kernel, bias)
    for groups in several:
        check_groups(function, groups, targets=(targets, "N"), **operands)
    several = [by_group(groups) for groups in several]
    splits = [groups.alone is not None for groups in several]

    @tf.custom_gradient
    def loss(x: tf.Tensor, kernel: tf.Tensor, *biases: tf.Tensor) -> Any:
        logits = logits_of(x, kernel, biases)
        softs = [
            SoftTargets(x, kernel, biases, groups.alone, logits)
            for groups in several
            if groups.alone is not None
        ]
        found = exponentials_of(logits, targets)
        pools = [_pool(groups, x, kernel, biases, found) for groups in several]

        def gradient(g: tf.Tensor, *upstream: tf.Tensor) -> list[tf.Tensor]:
            g = tf.convert_to_tensor(g)
            of_pools = upstream[: len(pools)]
            of_softs = [tf.convert_to_tensor(h) for h in upstream[len(pools) :]]
            owned = list(zip(softs, of_softs, strict=True))
            values, scales = found.values, g
            for soft, h in owned:
                scales += soft.scales(h)
            for soft, h in owned:
                values = soft.subtracted(values, found.sums, scales, h)
            members = list(zip(several, pools, of_pools, strict=True))
            if len(members) == 1:
                values, scales = _overwritten(*members[0], values, scales, g)
            else:
                values, scales = _added(members, values, scales)
            gradients = pull_back(
                x,
                kernel,
                biases,
                targets,
                values=values,
                sums=found.sums,
                scales=scales,
                target_gradients=g,
            )
            for soft, h in owned:
                gradients = soft.without_bases(gradients, h)
            return gradients

        losses = [found.log_partition - found.target_logits]
        losses += [pool.loss for pool in pools]
        return (*losses, *(soft.loss(found) for soft in softs)), gradient

    cross_entropy, *others = loss(features, kernel, *([] if bias is None else [bias]))
    induced, alone = others[: len(splits)], iter(others[len(splits) :])
    owned = [next(alone) if is_split else None for is_split in splits]
    return JointLosses(cross_entropy, induced, owned)


def _pool(
    groups: Groups,
    x: tf.Tensor,
    kernel: tf.Tensor,
    biases: Sequence[tf.Tensor],
    found: Exponentials,
) -> Pool:
    def member_log_probs() -> tf.Tensor:
        logits = logits_of(tf.gather(x, groups.rows), kernel, biases)
        return logits - tf.gather(found.log_partition, groups.rows)[:, tf.newaxis]

    return Pool(
        groups,
        tf.gather(found.values, groups.rows),
        member_log_probs,
        scales=tf.gather(found.sums, groups.rows),
    )


def _overwritten(
    groups: Groups,
    pool: Pool,
    induced: tf.Tensor,
    values: tf.Tensor,
    scales: tf.Tensor,
    g: tf.Tensor,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns `values` and `scales` of `pull_back` with the groups of one model.

    Rows of a group then hold their whole gradient but for 1/s; none of them is alone.
    """
    rows = groups.rows[:, tf.newaxis]
    shift = tf.gather(g, groups.rows)
    members = pool.shifted_cotangent(induced, shift)
    return (
        tf.tensor_scatter_nd_update(values, rows, members),
        tf.tensor_scatter_nd_update(scales, rows, tf.ones_like(shift)),
    )


def _added(
    members: Sequence[tuple[Groups, Pool, tf.Tensor]],
    values: tf.Tensor,
    scales: tf.Tensor,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the same of several, where a row may be in groups of some, or alone."""
    rows = tf.concat([groups.rows for groups, *_ in members], 0)[:, tf.newaxis]
    ones = tf.ones_like(rows[:, 0], scales.dtype)
    own = tf.tensor_scatter_nd_update(tf.zeros_like(scales), rows, ones) > 0
    ones = tf.ones_like(scales)
    values *= tf.where(own, scales, ones)[:, tf.newaxis]
    for groups, pool, induced in members:
        values = tf.tensor_scatter_nd_add(
            values, groups.rows[:, tf.newaxis], pool.cotangent(induced)
        )
    return values, tf.where(own, ones, scales)
