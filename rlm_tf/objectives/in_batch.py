"""The induced model inside a batch: positions that share a short context average.

`objectives.imm` takes K sampled predictions a position. Here the samples are the
predictions that the batch holds anyway: all positions with the same short context form
a group and their mean is that context's induced model. Groups are ragged, so the sums
are products with a one-hot matrix, and value and gradient are written by hand: a step
with IMM must cost little more than one without.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from rlm_tf.checks import check_shapes
from rlm_tf.numerics import multiply_no_nan_log
from rlm_tf.typing import LossOutput

# Sums of probabilities below this are computed again in log space: float32 products
# near 1e-38 lose digits and then vanish.
_SAFE_PROBABILITY = 1e-30


class GroupExtra(NamedTuple):
    """What the grouped loss also computes.

    Attributes:
        log_sums: `[G, V]`, log of the sum of the members' probabilities.
    """

    log_sums: tf.Tensor


class JointLoss(NamedTuple):
    """Both losses of one batch.

    Attributes:
        cross_entropy: `[N]`, nats, of the labels.
        induced: `[G]`, nats, of the groups' induced models.
    """

    cross_entropy: tf.Tensor
    induced: tf.Tensor


def grouped_induced_cross_entropy(
    logits: tf.Tensor,
    groups: tf.Tensor,
    target_probs: tf.Tensor,
    *,
    bank_sums: tf.Tensor | None = None,
    bank_counts: tf.Tensor | None = None,
) -> LossOutput:
    """Returns the IMM loss of every group, Eqs. (9) and (12) over a batch.

    `loss_g = - sum_y P_hat_g(y) log( S_g(y) / n_g )` with `S_g` the sum of
    `softmax(logits_i)` over the members `i` of group g, plus the bank's share, and
    `n_g` their number. The gradient to member i's logits is
    `q_i * (q_i . U_g) - q_i * U_g` with `U_g = P_hat_g / S_g`; nothing flows to the
    targets or to the bank.

    Args:
        logits: `[M, V]`, one row a member.
        groups: `[M]`, int32 group of each row; every group has a member.
        target_probs: `[G, V]`; exact zeros contribute nothing.
        bank_sums: `[G, V]`, sums of further predictions for each group, or None.
        bank_counts: `[G]`, how many predictions `bank_sums` holds.

    Returns:
        `loss` `[G]` in nats.

    Raises:
        ValueError: If shapes do not fit.
    """
    check_shapes(
        "grouped_induced_cross_entropy",
        logits=(logits, "M V"),
        groups=(groups, "M"),
        target_probs=(target_probs, "G V"),
        **({} if bank_sums is None else {"bank_sums": (bank_sums, "G V")}),
        **({} if bank_counts is None else {"bank_counts": (bank_counts, "G")}),
    )
    pool = _Pool(groups, tf.cast(target_probs, logits.dtype), bank_sums, bank_counts)

    @tf.custom_gradient
    def compute(logits):
        probs = tf.nn.softmax(logits)
        loss, log_sums = pool.loss(probs, lambda: tf.nn.log_softmax(logits))

        def gradient(loss_gradient, _):
            return pool.cotangent(
                probs, log_sums, loss_gradient, lambda: tf.nn.log_softmax(logits)
            )

        return (loss, log_sums), gradient

    loss, log_sums = compute(logits)
    return LossOutput(loss, GroupExtra(tf.stop_gradient(log_sums)))


def joint_cross_entropy(
    logits: tf.Tensor,
    labels: tf.Tensor,
    rows: tf.Tensor,
    groups: tf.Tensor,
    target_probs: tf.Tensor,
    *,
    bank_sums: tf.Tensor | None = None,
    bank_counts: tf.Tensor | None = None,
) -> JointLoss:
    """Returns cross-entropy and in-batch IMM loss of the same logits, in one softmax.

    Equal to `sparse_softmax_cross_entropy_with_logits(labels, logits)` and to
    `grouped_induced_cross_entropy(gather(logits, rows), groups, ...)`, in value and in
    gradient; the softmax is computed once and one gradient array is written.

    Args:
        logits: `[N, V]`.
        labels: `[N]`, int32.
        rows: `[M]`, int32, distinct rows of `logits` that belong to a group.
        groups: `[M]`, int32.
        target_probs: `[G, V]`.
        bank_sums: `[G, V]` or None.
        bank_counts: `[G]` or None.

    Raises:
        ValueError: If shapes do not fit.
    """
    check_shapes(
        "joint_cross_entropy",
        logits=(logits, "N V"),
        labels=(labels, "N"),
        rows=(rows, "M"),
        groups=(groups, "M"),
        target_probs=(target_probs, "G V"),
    )
    pool = _Pool(groups, tf.cast(target_probs, logits.dtype), bank_sums, bank_counts)

    @tf.custom_gradient
    def compute(logits):
        probs = tf.nn.softmax(logits)
        cross_entropy = _label_cross_entropy(probs, logits, labels)
        members = tf.gather(probs, rows)

        def member_log_probs():
            return tf.nn.log_softmax(tf.gather(logits, rows))

        induced, log_sums = pool.loss(members, member_log_probs)

        def gradient(cross_entropy_gradient, induced_gradient):
            indices = tf.stack([tf.range(tf.shape(labels)[0]), labels], axis=1)
            # Scattering into the fresh product writes in place: no third array.
            out = probs * cross_entropy_gradient[:, tf.newaxis]
            out = tf.tensor_scatter_nd_sub(out, indices, cross_entropy_gradient)
            return tf.tensor_scatter_nd_add(
                out,
                rows[:, tf.newaxis],
                pool.cotangent(members, log_sums, induced_gradient, member_log_probs),
            )

        return (cross_entropy, induced), gradient

    return JointLoss(*compute(logits))


class _Pool:
    """Groups, targets and bank of one batch, with the loss and its cotangent."""

    def __init__(
        self,
        groups: tf.Tensor,
        target_probs: tf.Tensor,
        bank_sums: tf.Tensor | None,
        bank_counts: tf.Tensor | None,
    ):
        dtype = target_probs.dtype
        self.groups = groups
        self.target_probs = tf.stop_gradient(target_probs)
        num_groups = tf.shape(target_probs)[0]
        self.one_hot = tf.one_hot(groups, num_groups, axis=0, dtype=dtype)
        self.counts = tf.reduce_sum(self.one_hot, axis=1)
        self.bank_sums = None
        if bank_sums is not None:
            self.bank_sums = tf.stop_gradient(tf.cast(bank_sums, dtype))
            self.counts += tf.cast(bank_counts, dtype)

    def loss(
        self, probs: tf.Tensor, log_probs: Callable[[], tf.Tensor]
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the loss `[G]` and the log-sums `[G, V]`."""
        sums = self.one_hot @ probs
        if self.bank_sums is not None:
            sums += self.bank_sums
        log_sums = tf.cond(
            _is_safe(sums),
            lambda: tf.math.log(sums),
            lambda: self._log_sums(log_probs()),
        )
        log_induced = log_sums - tf.math.log(self.counts)[:, tf.newaxis]
        loss = -tf.reduce_sum(
            multiply_no_nan_log(self.target_probs, log_induced), axis=-1
        )
        return loss, log_sums

    def cotangent(
        self,
        probs: tf.Tensor,
        log_sums: tf.Tensor,
        loss_gradient: tf.Tensor,
        log_probs: Callable[[], tf.Tensor],
    ) -> tf.Tensor:
        """Returns the gradient of `sum_g loss_gradient_g loss_g` to the logits."""
        # A gathered loss hands back slices.
        loss_gradient = tf.convert_to_tensor(loss_gradient)
        scaled = self.target_probs * loss_gradient[:, tf.newaxis]

        def fast() -> tf.Tensor:
            ratios = scaled * tf.exp(-log_sums)
            # All inner products, of which one a row is needed, cost less than one
            # more elementwise pass over [M, V].
            inner = tf.gather(
                tf.matmul(probs, ratios, transpose_b=True),
                self.groups[:, tf.newaxis],
                batch_dims=1,
            )
            return probs * (inner - tf.gather(ratios, self.groups))

        def exact() -> tf.Tensor:
            # C_i = Q_i / S, zero where no member gives the word any probability.
            reachable = tf.math.is_finite(log_sums)
            log_divisor = tf.where(reachable, log_sums, tf.zeros_like(log_sums))
            log_share = log_probs() - tf.gather(log_divisor, self.groups)
            share = tf.gather(scaled, self.groups) * tf.exp(log_share)
            return probs * tf.reduce_sum(share, axis=-1, keepdims=True) - share

        return tf.cond(tf.exp(tf.reduce_min(log_sums)) > _SAFE_PROBABILITY, fast, exact)

    def _log_sums(self, log_probs: tf.Tensor) -> tf.Tensor:
        num_groups = tf.shape(self.target_probs)[0]
        highest = tf.math.unsorted_segment_max(log_probs, self.groups, num_groups)
        highest = tf.maximum(highest, log_probs.dtype.min)
        shifted = tf.exp(log_probs - tf.gather(highest, self.groups))
        log_sums = tf.math.log(self.one_hot @ shifted) + highest
        if self.bank_sums is None:
            return log_sums
        return tf.reduce_logsumexp(
            tf.stack([log_sums, tf.math.log(self.bank_sums)]), axis=0
        )


def _is_safe(probs: tf.Tensor) -> tf.Tensor:
    return tf.reduce_min(probs) > _SAFE_PROBABILITY


def _label_cross_entropy(
    probs: tf.Tensor, logits: tf.Tensor, labels: tf.Tensor
) -> tf.Tensor:
    label_probs = tf.gather(probs, labels, batch_dims=1)
    return tf.cond(
        _is_safe(label_probs),
        lambda: -tf.math.log(label_probs),
        lambda: tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits),
    )
