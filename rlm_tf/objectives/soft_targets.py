"""Cross-entropy of targets and of whole distributions in one softmax.

What knowledge distillation trains on (Hinton et al. 2015), and noising as Eq. (16) of
Muneeb and Ohannessian (2024) has it: every position is to predict what a restricted
model says of its own short context.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import tensorflow as tf

from rlm_tf.checks import check_shapes
from rlm_tf.numerics import at_least_single, multiply_no_nan_log
from rlm_tf.objectives.linear_softmax import (
    Exponentials,
    exponentials_of,
    linear_operands,
    logits_of,
    pull_back,
)
from rlm_tf.objectives.lumped_probs import (
    LumpedProbs,
    LumpedTargets,
    lumped_cross_entropy,
)
from rlm_tf.restricted.sparse_probs import SparseProbs

# Distributions `[N, V]`, sparse ones, or lumped ones.
Distributions: TypeAlias = tf.Tensor | SparseProbs | LumpedProbs
# Their axes.
_SPARSE_AXES = {
    "shares": "N K",
    "bases": "K V",
    "rows": "E",
    "words": "E",
    "values": "E",
}
_LUMPED_AXES = {"words": "N k", "log_probs": "N k", "log_rest": "N"}


class SoftTargetLoss(NamedTuple):
    """Both losses of one batch.

    Attributes:
        cross_entropy: `[N]`, nats, of the targets.
        soft: `[N]`, nats, `-sum_v P_nv log q_nv`; of lumped distributions, with the
            lump as one word.
    """

    cross_entropy: tf.Tensor
    soft: tf.Tensor


def cross_entropy_with_soft_targets(
    logits: tf.Tensor, targets: tf.Tensor, probs: Distributions
) -> SoftTargetLoss:
    """Returns both losses of logits; no gradient flows to the distributions.

    Args:
        logits: `[N, V]`.
        targets: int `[N]`.
        probs: P, `[N, V]`, not negative; words of probability 0 count nothing. They
            need not sum to 1.

    Raises:
        ValueError: If shapes do not fit.
    """
    name = "cross_entropy_with_soft_targets"
    _check(name, probs, logits=(logits, "N V"), targets=(targets, "N"))
    logits = at_least_single(logits)
    cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=targets, logits=logits
    )
    return SoftTargetLoss(cross_entropy, soft_cross_entropy(logits, probs))


def soft_cross_entropy(logits: tf.Tensor, probs: Distributions) -> tf.Tensor:
    """Returns `-sum_v P_nv log q_nv`, `[N]`, nats; arguments as the function above."""
    if isinstance(probs, LumpedProbs):
        return lumped_cross_entropy(logits, probs.constant(logits.dtype)).loss
    probs = _constant(probs, logits.dtype)
    if not isinstance(probs, SparseProbs):
        log_q = tf.nn.log_softmax(logits)
        return -tf.reduce_sum(multiply_no_nan_log(probs, log_q), axis=1)
    inner = probs.row_sums(probs.values * tf.gather_nd(logits, probs.places()))
    shared = tf.matmul(logits, probs.bases, transpose_b=True)
    inner += tf.reduce_sum(probs.shares * shared, axis=1)
    log_partition = tf.reduce_logsumexp(logits, axis=1)
    return probs.mass() * log_partition - inner


def linear_cross_entropy_with_soft_targets(
    features: tf.Tensor,
    kernel: tf.Tensor,
    bias: tf.Tensor | None,
    targets: tf.Tensor,
    probs: Distributions,
) -> SoftTargetLoss:
    """Returns both losses of `softmax(features kernel^T + bias)` in one softmax.

    Equal, in value and in gradient, to `cross_entropy_with_soft_targets` of the logits.
    One `[N, V]` array is kept, `e = exp(z - max z)`; the backward pass subtracts the
    entries of sparse distributions in it, and what rows have of a shared base is of
    rank one, so that it costs next to nothing.

    Args:
        features: `[N, D]`.
        kernel: `[V, D]`, dtype of `features`.
        bias: `[V]` or None.
        targets: int `[N]`.
        probs: See `cross_entropy_with_soft_targets`.

    Raises:
        ValueError: If shapes do not fit.
        TypeError: If `features` or `kernel` is not floating point.
    """
    name = "linear_cross_entropy_with_soft_targets"
    operands = linear_operands(name, features, kernel, bias)
    _check(name, probs, targets=(targets, "N"), **operands)

    @tf.custom_gradient
    def loss(x: tf.Tensor, kernel: tf.Tensor, *biases: tf.Tensor) -> Any:
        logits = logits_of(x, kernel, biases)
        soft: SoftTargets | LumpedTargets
        if isinstance(probs, LumpedProbs):
            is_half = x.dtype.size < tf.float32.size
            soft = LumpedTargets(probs, logits, is_half)
        else:
            soft = SoftTargets(x, kernel, biases, probs, logits)
        found = exponentials_of(logits, targets)
        e, s, log_partition, target_logits = found

        def gradient(g: tf.Tensor, h: tf.Tensor) -> list[tf.Tensor]:
            g, h = tf.convert_to_tensor(g), tf.convert_to_tensor(h)
            scales = g + soft.scales(h)
            if isinstance(soft, LumpedTargets):
                values, scales = soft.subtracted(e, s, scales, h)
            else:
                values = soft.subtracted(e, s, scales, h)
            gradients = pull_back(
                x,
                kernel,
                biases,
                targets,
                values=values,
                sums=s,
                scales=scales,
                target_gradients=g,
            )
            return soft.without_bases(gradients, h)

        return (log_partition - target_logits, soft.loss(found)), gradient

    return SoftTargetLoss(*loss(features, kernel, *([] if bias is None else [bias])))


class SoftTargets:
    """The share of distributions in the loss of a linear softmax, and its gradient.

    Args:
        x: `[N, D]`.
        kernel: `[V, D]`.
        biases: One bias `[V]`, or none.
        probs: P.
        logits: `[N, V]`, what the three make.
    """

    def __init__(
        self,
        x: tf.Tensor,
        kernel: tf.Tensor,
        biases: Sequence[tf.Tensor],
        probs: tf.Tensor | SparseProbs,
        logits: tf.Tensor,
    ) -> None:
        self._probs = probs = _constant(probs, logits.dtype)
        if not isinstance(probs, SparseProbs):
            self._mass = tf.reduce_sum(probs, axis=1)
            self._inner = tf.reduce_sum(multiply_no_nan_log(probs, logits), axis=1)
            return
        self._mass = probs.mass()
        self._x = tf.cast(x, logits.dtype)
        self._thin = tf.matmul(probs.bases, tf.cast(kernel, logits.dtype))
        shared = tf.matmul(self._x, self._thin, transpose_b=True)
        if biases:
            shared += tf.linalg.matvec(probs.bases, tf.cast(biases[0], logits.dtype))
        entries = probs.row_sums(probs.values * tf.gather_nd(logits, probs.places()))
        self._inner = entries + tf.reduce_sum(probs.shares * shared, axis=1)

    def loss(self, found: Exponentials) -> tf.Tensor:
        """Returns `-sum_v P_nv log q_nv`, `[N]`, of exponentials of the logits."""
        return self._mass * found.log_partition - self._inner

    def scales(self, h: tf.Tensor) -> tf.Tensor:
        """Returns what `scales` of `pull_back` have of this loss, `[N]`.

        Args:
            h: `[N]`, upstream of it.
        """
        return h * self._mass

    def subtracted(
        self, values: tf.Tensor, sums: tf.Tensor, scales: tf.Tensor, h: tf.Tensor
    ) -> tf.Tensor:
        """Returns `values` of `pull_back`, but for what bases add.

        Args:
            values: `[N, V]`, exponentials, less what other losses have in them.
            sums: `[N]`, of the exponentials.
            scales: `[N]`, those of all losses.
            h: `[N]`, upstream of this loss.
        """
        probs, shares = self._probs, tf.math.divide_no_nan(h * sums, scales)
        if not isinstance(probs, SparseProbs):
            return values - probs * shares[:, tf.newaxis]
        entries = probs.values * tf.gather(shares, probs.rows)
        return tf.tensor_scatter_nd_sub(values, probs.places(), entries)

    def without_bases(
        self, gradients: list[tf.Tensor], upstream: tf.Tensor
    ) -> list[tf.Tensor]:
        """Returns gradients less what bases have in them, of rank K."""
        probs = self._probs
        if not isinstance(probs, SparseProbs):
            return gradients
        own = probs.shares * upstream[:, tf.newaxis]
        parts = [
            tf.matmul(own, self._thin),
            tf.matmul(
                probs.bases,
                tf.matmul(own, self._x, transpose_a=True),
                transpose_a=True,
            ),
            tf.linalg.matvec(probs.bases, tf.reduce_sum(own, axis=0), transpose_a=True),
        ]
        return [
            gradient - tf.cast(part, gradient.dtype)
            for gradient, part in zip(gradients, parts, strict=False)
        ]


def _constant(
    probs: tf.Tensor | SparseProbs, dtype: tf.DType
) -> tf.Tensor | SparseProbs:
    """Returns distributions in a dtype, without a gradient."""
    if not isinstance(probs, SparseProbs):
        return tf.stop_gradient(tf.cast(probs, dtype))
    own = {
        name: tf.stop_gradient(tf.cast(getattr(probs, name), dtype))
        for name in ("shares", "bases", "values")
    }
    return probs._replace(
        rows=tf.cast(probs.rows, tf.int64), words=tf.cast(probs.words, tf.int64), **own
    )


def _check(function: str, probs: Distributions, **arrays: Any) -> None:
    if isinstance(probs, SparseProbs | LumpedProbs):
        axes = _SPARSE_AXES if isinstance(probs, SparseProbs) else _LUMPED_AXES
        given = {name: (getattr(probs, name), own) for name, own in axes.items()}
    else:
        given = {"probs": (probs, "N V")}
    check_shapes(function, **arrays, **given)
