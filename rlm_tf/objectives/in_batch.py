"""The induced model inside a batch: positions that share a short context average.

`objectives.imm` takes K sampled predictions a position. Here the samples are the
predictions that the batch holds anyway: all positions with the same short context form
a group and their mean is that context's induced model. Value and gradient are written
by hand, pass by pass: a step with IMM must cost little more than one without.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from rlm_tf.checks import check_shapes
from rlm_tf.numerics import multiply_no_nan_log
from rlm_tf.restricted.sparse_probs import SparseProbs
from rlm_tf.typing import LossOutput

# Sums of probabilities below this are computed again in log space: float32 products
# near 1e-38 lose digits and then vanish.
_SAFE_PROBABILITY = 1e-30


class Groups(NamedTuple):
    """Which rows of a batch form which induced model, and what it has to match.

    Attributes:
        rows: int32 `[M]`, distinct rows of the batch that belong to a group.
        groups: int32 `[M]`, the group of each; every group has at least one row. Any
            order; the losses sort (see `by_group`).
        target_probs: `[G, V]`, the restricted model; exact zeros contribute nothing.
        bank_sums: `[G, V]`, sums of further predictions that get no gradient, or None.
        bank_counts: `[G]`, how many predictions `bank_sums` holds, or None.
        alone: What the rows that are a group on their own have to match, of all N rows
            of the batch, those of other groups without mass; or None.
    """

    rows: tf.Tensor
    groups: tf.Tensor
    target_probs: tf.Tensor
    bank_sums: tf.Tensor | None = None
    bank_counts: tf.Tensor | None = None
    alone: SparseProbs | None = None


class GroupExtra(NamedTuple):
    """What the grouped loss also computes.

    Attributes:
        log_sums: `[G, V]`, log of the sum of the members' probabilities.
    """

    log_sums: tf.Tensor


def grouped_induced_cross_entropy(logits: tf.Tensor, groups: Groups) -> LossOutput:
    """Returns the IMM loss of every group, Eqs. (9) and (12) over a batch.

    `loss_g = - sum_y P_hat_g(y) log( S_g(y) / n_g )` with `S_g` the sum of
    `softmax(logits_i)` over the rows `i` of group g, plus the bank's share, and `n_g`
    their number. The gradient to a row's logits is `q_i (q_i . U_g) - q_i U_g` with
    `U_g = P_hat_g / S_g`; nothing flows to the targets or to the bank.

    With a bank, it is multiplied by `n_g / m_g`, m_g rows being of the batch. All n_g
    predictions are draws from the same induced model, so the m_g of them that can be
    differentiated stand for all: with that factor the expected gradient is the one of
    n_g differentiated predictions, without it a context that leans on the bank would
    hardly be trained.

    Args:
        logits: `[N, V]`.
        groups: The groups of these rows.

    Returns:
        `loss` `[G]` in nats.

    Raises:
        ValueError: If shapes do not fit.
    """
    check_groups("grouped_induced_cross_entropy", groups, logits=(logits, "N V"))
    groups = by_group(groups)
    members = tf.gather(logits, groups.rows)

    @tf.custom_gradient
    def compute(members):
        probs = tf.nn.softmax(members)
        pool = Pool(groups, probs, lambda: tf.nn.log_softmax(members))

        def gradient(loss_gradient, _):
            return pool.cotangent(loss_gradient)

        return (pool.loss, pool.log_sums), gradient

    loss, log_sums = compute(members)
    return LossOutput(loss, GroupExtra(tf.stop_gradient(log_sums)))


def by_group(groups: Groups) -> Groups:
    """Returns the same groups with the rows of each side by side, as `Pool` wants."""
    order = tf.argsort(groups.groups, stable=True)
    return groups._replace(
        rows=tf.gather(groups.rows, order), groups=tf.gather(groups.groups, order)
    )


def check_groups(
    function: str, groups: Groups, **specification: tuple[tf.Tensor, str]
) -> None:
    """Checks the shapes of groups together with those of other arguments."""
    specification.update(
        rows=(groups.rows, "M"),
        groups=(groups.groups, "M"),
        target_probs=(groups.target_probs, "G V"),
    )
    if groups.bank_sums is not None:
        specification.update(
            bank_sums=(groups.bank_sums, "G V"),
            bank_counts=(groups.bank_counts, "G"),
        )
    check_shapes(function, **specification)


class Pool:
    """Induced models of all groups, their loss and its cotangent, from raw arrays.

    Probabilities may come unnormalised, `q_i = values_i / scales_i`, so that a caller
    that holds exponentials need not divide them.

    Args:
        groups: The groups, ascending.
        values: `[M, V]`, probabilities of the rows times `scales`.
        log_probs: Computes `[M, V]`; called only where sums of `values` underflow.
        scales: `[M]`, or None for ones.
    """

    def __init__(
        self,
        groups: Groups,
        values: tf.Tensor,
        log_probs: Callable[[], tf.Tensor],
        scales: tf.Tensor | None = None,
    ):
        dtype = values.dtype
        self.values = values
        self.scales = tf.ones_like(values[:, 0]) if scales is None else scales
        self.log_probs = log_probs
        self.groups = groups.groups
        self.bank_sums = groups.bank_sums
        self.target_probs = tf.stop_gradient(tf.cast(groups.target_probs, dtype))
        self.num_groups = tf.shape(groups.target_probs)[0]
        counts = tf.math.segment_sum(tf.ones_like(self.scales), groups.groups)
        probs = values if scales is None else values / scales[:, tf.newaxis]
        self.sums = tf.math.segment_sum(probs, groups.groups)
        self.enlargement: tf.Tensor | None = None
        if groups.bank_sums is not None:
            self.bank_sums = tf.stop_gradient(tf.cast(groups.bank_sums, dtype))
            self.sums += self.bank_sums
            enlarged = counts + tf.cast(groups.bank_counts, dtype)
            self.enlargement = enlarged / counts
            counts = enlarged
        self.is_safe = tf.reduce_min(self.sums) > _SAFE_PROBABILITY
        self.log_sums, inner = tf.cond(
            self.is_safe, self._fast_log_sums, self._exact_log_sums
        )
        mass = tf.reduce_sum(self.target_probs, axis=-1)
        self.loss = mass * tf.math.log(counts) - inner

    def cotangent(self, loss_gradient: tf.Tensor) -> tf.Tensor:
        """Returns the gradient of `sum_g loss_gradient_g loss_g` to the logits.

        A bank enlarges it as `grouped_induced_cross_entropy` says.

        The result `[M, V]` is multiplied by `scales`, as `values` are.
        """
        no_shift = tf.zeros_like(self.scales)
        return self.shifted_cotangent(loss_gradient, no_shift)

    def shifted_cotangent(
        self, loss_gradient: tf.Tensor, shift: tf.Tensor
    ) -> tf.Tensor:
        """Returns `cotangent + shift_i values_i`; `shift` `[M]` costs no pass."""
        # A gathered loss hands back slices.
        loss_gradient = tf.convert_to_tensor(loss_gradient)
        if self.enlargement is not None:
            loss_gradient *= self.enlargement
        scaled = self.target_probs * loss_gradient[:, tf.newaxis]
        return tf.cond(
            self.is_safe,
            lambda: self._fast_cotangent(scaled, shift),
            lambda: self._exact_cotangent(scaled, shift),
        )

    def _fast_cotangent(self, scaled: tf.Tensor, shift: tf.Tensor) -> tf.Tensor:
        ratios = tf.gather(scaled / self.sums, self.groups)
        level = shift + tf.reduce_sum(self.values * ratios, axis=-1) / self.scales
        return self.values * (level[:, tf.newaxis] - ratios)

    def _exact_cotangent(self, scaled: tf.Tensor, shift: tf.Tensor) -> tf.Tensor:
        # C_i = Q_i / S, zero where no member gives the word any probability.
        reachable = tf.math.is_finite(self.log_sums)
        log_divisor = tf.where(reachable, self.log_sums, tf.zeros_like(self.log_sums))
        log_share = self.log_probs() - tf.gather(log_divisor, self.groups)
        share = tf.gather(scaled, self.groups) * tf.exp(log_share)
        level = shift + tf.reduce_sum(share, axis=-1)
        return self.values * level[:, tf.newaxis] - share * self.scales[:, tf.newaxis]

    def _fast_log_sums(self) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns `log S` and its inner product with the targets."""
        log_sums = tf.math.log(self.sums)
        return log_sums, tf.reduce_sum(self.target_probs * log_sums, axis=-1)

    def _exact_log_sums(self) -> tuple[tf.Tensor, tf.Tensor]:
        log_probs = self.log_probs()
        highest = tf.math.unsorted_segment_max(log_probs, self.groups, self.num_groups)
        highest = tf.maximum(highest, log_probs.dtype.min)
        shifted = tf.exp(log_probs - tf.gather(highest, self.groups))
        sums = tf.math.unsorted_segment_sum(shifted, self.groups, self.num_groups)
        log_sums = tf.math.log(sums) + highest
        if self.bank_sums is not None:
            stacked = tf.stack([log_sums, tf.math.log(self.bank_sums)])
            log_sums = tf.reduce_logsumexp(stacked, axis=0)
        products = multiply_no_nan_log(self.target_probs, log_sums)
        return log_sums, tf.reduce_sum(products, axis=-1)
