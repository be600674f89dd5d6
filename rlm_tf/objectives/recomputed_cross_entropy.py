"""Cross-entropy of several linear softmaxes, of whose logits one part is kept."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from rlm_tf.checks import check_shapes
from rlm_tf.objectives.linear_softmax import (
    exponentials,
    linear_operands,
    pull_back,
)


def recomputed_cross_entropy(
    features: tf.Tensor,
    kernel: tf.Tensor,
    bias: tf.Tensor | None,
    targets: tf.Tensor,
) -> tf.Tensor:
    """Negative log-likelihood of targets under several softmaxes of one kernel.

        loss_pn = -log softmax(x_pn K^T + b)_{y_n}

    Value and gradient are those of `linear_cross_entropy` of each part p. The logits of
    one part are in memory at a time, `[N, V]` of `[P, N, V]`; the gradient computes
    them again, so there are four matrix products instead of three.

    Args:
        features: x, `[P, N, D]`, floating point.
        kernel: K, `[V, D]`, dtype of `features`.
        bias: b, `[V]`, or None.
        targets: y, int `[N]`, in [0, V).

    Returns:
        `[P, N]`, nats, float32 (float64 for float64 features). First derivatives only.

    Raises:
        ValueError: If shapes do not fit.
        TypeError: If `features` or `kernel` is not floating point.
    """
    name = "recomputed_cross_entropy"
    if features.shape.rank != 3:
        raise ValueError(
            f"{name}: `features` must be [P, N, D], found shape {features.shape}."
        )
    operands = linear_operands(name, features[0], kernel, bias)
    check_shapes(name, targets=(targets, "N"), **operands)
    dtype = tf.float64 if features.dtype == tf.float64 else tf.float32

    @tf.custom_gradient
    def loss(x: tf.Tensor, kernel: tf.Tensor, *biases: tf.Tensor) -> Any:
        parts = tf.shape(x)[0]

        def add_losses(p: tf.Tensor, losses: tf.TensorArray) -> tuple[Any, ...]:
            found = exponentials(x[p], kernel, biases, targets)
            return p + 1, losses.write(p, found.log_partition - found.target_logits)

        _, losses = tf.while_loop(
            lambda p, _: p < parts,
            add_losses,
            (tf.constant(0), tf.TensorArray(dtype, parts)),
            parallel_iterations=1,
        )

        def gradient(g: tf.Tensor) -> list[tf.Tensor]:
            weights = (kernel, *biases)

            def add_gradients(
                p: tf.Tensor, d_x: tf.TensorArray, *sums: tf.Tensor
            ) -> tuple[Any, ...]:
                found = exponentials(x[p], kernel, biases, targets)
                of_x, *others = pull_back(
                    x[p],
                    kernel,
                    biases,
                    targets,
                    values=found.values,
                    sums=found.sums,
                    scales=g[p],
                    target_gradients=g[p],
                )
                added = zip(sums, others, strict=True)
                return (
                    p + 1,
                    d_x.write(p, of_x),
                    *[total + tf.cast(new, dtype) for total, new in added],
                )

            _, d_x, *sums = tf.while_loop(
                lambda p, *_: p < parts,
                add_gradients,
                (
                    tf.constant(0),
                    tf.TensorArray(x.dtype, parts),
                    *[tf.zeros_like(weight, dtype) for weight in weights],
                ),
                parallel_iterations=1,
            )
            rounded = zip(sums, weights, strict=True)
            return [
                d_x.stack(),
                *[tf.cast(total, weight.dtype) for total, weight in rounded],
            ]

        return losses.stack(), gradient

    return loss(features, kernel, *([] if bias is None else [bias]))
