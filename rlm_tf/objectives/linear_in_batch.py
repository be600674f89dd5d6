"""Cross-entropy and in-batch IMM of a softmax whose logits are a linear map."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from rlm_tf.checks import check_floating
from rlm_tf.objectives.in_batch import Groups, Pool, check_groups


class JointLoss(NamedTuple):
    """Both losses of one batch.

    Attributes:
        cross_entropy: `[N]`, nats, of the targets.
        induced: `[G]`, nats, of the groups' induced models.
    """

    cross_entropy: tf.Tensor
    induced: tf.Tensor


def linear_joint_cross_entropy(
    features: tf.Tensor,
    kernel: tf.Tensor,
    bias: tf.Tensor | None,
    targets: tf.Tensor,
    groups: Groups,
) -> JointLoss:
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
    operands = {"features": (features, "N D"), "kernel": (kernel, "V D")}
    if bias is not None:
        operands["bias"] = (bias, "V")
    check_groups(
        "linear_joint_cross_entropy", groups, targets=(targets, "N"), **operands
    )
    check_floating("linear_joint_cross_entropy", features=features, kernel=kernel)

    @tf.custom_gradient
    def loss(x: tf.Tensor, kernel: tf.Tensor, *biases: tf.Tensor) -> Any:
        logits = _logits(x, kernel, biases)
        highest = tf.reduce_max(logits, axis=1)
        e = tf.exp(logits - highest[:, tf.newaxis])
        s = tf.reduce_sum(e, axis=1)
        log_partition = tf.math.log(s) + highest
        cross_entropy = log_partition - tf.gather(logits, targets, batch_dims=1)

        def member_log_probs() -> tf.Tensor:
            rows = _logits(tf.gather(x, groups.rows), kernel, biases)
            return rows - tf.gather(log_partition, groups.rows)[:, tf.newaxis]

        pool = Pool(
            groups,
            tf.gather(e, groups.rows),
            member_log_probs,
            scales=tf.gather(s, groups.rows),
        )

        def gradient(g: tf.Tensor, induced_gradient: tf.Tensor) -> list[tf.Tensor]:
            rows = groups.rows[:, tf.newaxis]
            shift = tf.gather(g, groups.rows)
            members = pool.shifted_cotangent(induced_gradient, shift)
            arrays = tf.tensor_scatter_nd_update(e, rows, members)
            # Rows of a group hold their whole gradient but for 1/s.
            r = tf.tensor_scatter_nd_update(g, rows, tf.ones_like(shift)) / s
            r = r[:, tf.newaxis]
            half = tf.cast(arrays, x.dtype)
            wide_x = _at_least_single(x)
            d_x = r * _at_least_single(tf.matmul(half, kernel))
            d_x -= g[:, tf.newaxis] * _at_least_single(tf.gather(kernel, targets))
            d_kernel = tf.matmul(half, tf.cast(r * wide_x, x.dtype), transpose_a=True)
            index = tf.cast(targets, tf.int32)[:, tf.newaxis]
            target_rows = tf.cast(g[:, tf.newaxis] * wide_x, d_kernel.dtype)
            d_kernel = tf.tensor_scatter_nd_sub(d_kernel, index, target_rows)
            gradients = [tf.cast(d_x, x.dtype), d_kernel]
            if biases:
                d_bias = tf.matmul(arrays, r, transpose_a=True)[:, 0]
                d_bias = tf.tensor_scatter_nd_sub(d_bias, index, g)
                gradients.append(tf.cast(d_bias, biases[0].dtype))
            return gradients

        return (cross_entropy, pool.loss), gradient

    return JointLoss(*loss(features, kernel, *([] if bias is None else [bias])))


def _logits(x: tf.Tensor, kernel: tf.Tensor, biases: tuple[Any, ...]) -> tf.Tensor:
    logits = tf.matmul(x, kernel, transpose_b=True)
    if biases:
        logits = tf.nn.bias_add(logits, tf.cast(biases[0], logits.dtype))
    return _at_least_single(logits)


def _at_least_single(tensor: tf.Tensor) -> tf.Tensor:
    return tensor if tensor.dtype == tf.float64 else tf.cast(tensor, tf.float32)
