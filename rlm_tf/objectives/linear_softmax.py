"""A softmax whose logits are a linear map: the passes that its losses share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from rlm_tf.numerics import at_least_single


class Exponentials(NamedTuple):
    """One pass over the logits; only `values` is of size `[N, V]`.

    Attributes:
        values: `e = exp(z - max z)`, `[N, V]`.
        sums: `s_n = sum_v e_nv`, `[N]`.
        log_partition: `log sum_v exp z_nv`, `[N]`.
        target_logits: `z_{n, y_n}`, `[N]`.
    """

    values: tf.Tensor
    sums: tf.Tensor
    log_partition: tf.Tensor
    target_logits: tf.Tensor


def logits_of(
    x: tf.Tensor, kernel: tf.Tensor, biases: Sequence[tf.Tensor]
) -> tf.Tensor:
    """Returns `z = x K^T + b`, `[N, V]`, in single precision or wider.

    Args:
        x: `[N, D]`.
        kernel: K, `[V, D]`.
        biases: One bias `[V]`, or none.
    """
    logits = tf.matmul(x, kernel, transpose_b=True)
    if biases:
        logits = tf.nn.bias_add(logits, tf.cast(biases[0], logits.dtype))
    return at_least_single(logits)


def exponentials(
    x: tf.Tensor, kernel: tf.Tensor, biases: Sequence[tf.Tensor], targets: tf.Tensor
) -> Exponentials:
    """Returns what losses of the softmax are made of; arguments as `logits_of`."""
    logits = logits_of(x, kernel, biases)
    highest = tf.reduce_max(logits, axis=1)
    values = tf.exp(logits - highest[:, tf.newaxis])
    sums = tf.reduce_sum(values, axis=1)
    target_logits = tf.gather(logits, targets, axis=1, batch_dims=1)
    return Exponentials(values, sums, tf.math.log(sums) + highest, target_logits)


def pull_back(
    x: tf.Tensor,
    kernel: tf.Tensor,
    biases: Sequence[tf.Tensor],
    targets: tf.Tensor,
    *,
    values: tf.Tensor,
    scales: tf.Tensor,
    target_gradients: tf.Tensor,
) -> list[tf.Tensor]:
    """Pulls the logits' gradient `scales_n values_nv - g_n [v = y_n]` back.

    The product is never formed: scalings are done on the thin side of each matrix
    product.

    Args:
        x: `[N, D]`.
        kernel: `[V, D]`.
        biases: One bias `[V]`, or none.
        targets: y, int `[N]`.
        values: `[N, V]`.
        scales: `[N]`.
        target_gradients: g, `[N]`.

    Returns:
        The gradients to `x`, `kernel` and, if there is one, the bias.
    """
    half = tf.cast(values, x.dtype)
    r, g = scales[:, tf.newaxis], target_gradients[:, tf.newaxis]
    wide_x = at_least_single(x)
    d_x = r * at_least_single(tf.matmul(half, kernel))
    d_x -= g * at_least_single(tf.gather(kernel, targets))
    d_kernel = tf.matmul(half, tf.cast(r * wide_x, x.dtype), transpose_a=True)
    index = tf.cast(targets, tf.int32)[:, tf.newaxis]
    target_rows = tf.cast(g * wide_x, d_kernel.dtype)
    d_kernel = tf.tensor_scatter_nd_sub(d_kernel, index, target_rows)
    gradients = [tf.cast(d_x, x.dtype), d_kernel]
    if biases:
        d_bias = tf.matmul(values, r, transpose_a=True)[:, 0]
        d_bias = tf.tensor_scatter_nd_sub(d_bias, index, target_gradients)
        gradients.append(tf.cast(d_bias, biases[0].dtype))
    return gradients
