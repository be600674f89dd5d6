"""Cross-entropy of a softmax whose logits are a linear map of features."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from rlm_tf.checks import check_shapes
from rlm_tf.objectives.linear_softmax import (
    exponentials,
    linear_operands,
    pull_back,
)
from rlm_tf.typing import LossOutput


class LinearCrossEntropyExtra(NamedTuple):
    """By-products of `linear_cross_entropy`; they carry no gradient.

    Attributes:
        log_partition: `[N]`, the log of the sum of the exponentiated logits.
        target_logits: `[N]`, the logit of each target.
    """

    log_partition: tf.Tensor
    target_logits: tf.Tensor


def linear_cross_entropy(
    features: tf.Tensor,
    kernel: tf.Tensor,
    bias: tf.Tensor | None,
    targets: tf.Tensor,
) -> LossOutput:
    """Negative log-likelihood of targets under `softmax(features kernel^T + bias)`.

        z_n = x_n K^T + b;    loss_n = log sum_v exp z_nv - z_{n, y_n}

    Value and gradient are those of `tf.nn.sparse_softmax_cross_entropy_with_logits`,
    but of all the `[N, V]` arrays one is kept, `e = exp(z - max z)`, and it is not
    passed over again to normalise it, to subtract the targets or to multiply it by the
    upstream gradient g: with `s_n = sum_v e_nv` and `r = g / s`,

        dx_n = r_n (e_n K) - g_n K_{y_n}
        dK   = e^T (r x) - sum_n g_n onehot(y_n) x_n^T
        db   = e^T r - sum_n g_n onehot(y_n)

    so every scaling is done on the thin side of a matrix product. In half precision
    `e / s - onehot(y)` is formed, in single precision, before it is rounded for the
    products: the differences above would lose most digits near an optimum.

    Args:
        features: x, `[N, D]`, floating point. In half precision the products are in
            half precision, and everything else is in single precision.
        kernel: K, `[V, D]`, dtype of `features`; one row per type of the vocabulary,
            which is the layout of an embedding and the faster one here.
        bias: b, `[V]`, or None.
        targets: y, int `[N]`, in [0, V).

    Returns:
        The loss `[N]` in nats, float32 (float64 for float64 features), and a
        `LinearCrossEntropyExtra`. First derivatives only.

    Raises:
        ValueError: If shapes do not fit.
        TypeError: If `features` or `kernel` is not floating point.
    """
    name = "linear_cross_entropy"
    operands = linear_operands(name, features, kernel, bias)
    check_shapes(name, targets=(targets, "N"), **operands)

    @tf.custom_gradient
    def loss(x: tf.Tensor, kernel: tf.Tensor, *biases: tf.Tensor) -> Any:
        e, s, log_partition, target_logits = exponentials(x, kernel, biases, targets)

        def gradient(g: tf.Tensor, *_: tf.Tensor) -> list[tf.Tensor]:
            return pull_back(
                x,
                kernel,
                biases,
                targets,
                values=e,
                sums=s,
                scales=g,
                target_gradients=g,
            )

        return (log_partition - target_logits, log_partition, target_logits), gradient

    values, log_partition, target_logits = loss(
        features, kernel, *([] if bias is None else [bias])
    )
    extra = LinearCrossEntropyExtra(
        tf.stop_gradient(log_partition), tf.stop_gradient(target_logits)
    )
    return LossOutput(values, extra)
