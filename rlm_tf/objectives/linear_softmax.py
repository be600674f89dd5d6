"""A softmax whose logits are a linear map: the passes that its losses share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from rlm_tf.checks import check_floating, check_logits_size
from rlm_tf.numerics import at_least_single, rounded_product


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

    Raises:
        ValueError: If there are more logits than one array may hold.
    """
    positions = x.shape[0] or tf.shape(x)[0]
    fits = check_logits_size("logits_of", positions, kernel.shape[0])
    with tf.control_dependencies(fits):
        logits = rounded_product(x, kernel)
    if biases:
        logits = tf.nn.bias_add(logits, tf.cast(biases[0], logits.dtype))
    return at_least_single(logits)


def exponentials(
    x: tf.Tensor, kernel: tf.Tensor, biases: Sequence[tf.Tensor], targets: tf.Tensor
) -> Exponentials:
    """Returns what losses of the softmax are made of; arguments as `logits_of`."""
    return exponentials_of(logits_of(x, kernel, biases), targets)


def exponentials_of(logits: tf.Tensor, targets: tf.Tensor) -> Exponentials:
    """Returns the same of logits `[N, V]`, of single precision or wider."""
    highest = tf.reduce_max(logits, axis=1)
    values = tf.exp(logits - highest[:, tf.newaxis])
    sums = tf.reduce_sum(values, axis=1)
    target_logits = tf.gather(logits, targets, axis=1, batch_dims=1)
    return Exponentials(values, sums, tf.math.log(sums) + highest, target_logits)


def linear_operands(
    function: str, features: tf.Tensor, kernel: tf.Tensor, bias: tf.Tensor | None
) -> dict[str, tuple[tf.Tensor, str]]:
    """Returns the operands of a linear softmax for `check_shapes`.

    Raises:
        TypeError: If `features` or `kernel` is not floating point; names `function`.
    """
    check_floating(function, features=features, kernel=kernel)
    operands = {"features": (features, "N D"), "kernel": (kernel, "V D")}
    return operands if bias is None else {**operands, "bias": (bias, "V")}


def pull_back(
    x: tf.Tensor,
    kernel: tf.Tensor,
    biases: Sequence[tf.Tensor],
    targets: tf.Tensor,
    *,
    values: tf.Tensor,
    sums: tf.Tensor,
    scales: tf.Tensor,
    target_gradients: tf.Tensor,
) -> list[tf.Tensor]:
    """Pulls the gradient `c_n values_nv / sums_n - g_n [v = y_n]` of logits back.

    In single precision or wider it is never formed: scalings are done on the thin side
    of each matrix product, and targets are subtracted from the results. Near an optimum
    these are small differences of large numbers, which half precision has not the
    digits for; there the gradient is formed in single precision, in the place of
    `values`, and rounded once before one product each.

    Args:
        x: `[N, D]`.
        kernel: `[V, D]`.
        biases: One bias `[V]`, or none.
        targets: y, int `[N]`.
        values: `[N, V]`.
        sums: `[N]`.
        scales: c, `[N]`; not zero where `target_gradients` are not.
        target_gradients: g, `[N]`.

    Returns:
        The gradients to `x`, `kernel` and, if there is one, the bias.
    """
    if x.dtype.size < tf.float32.size:
        return _pull_back_half(
            x, kernel, biases, targets, values, sums, scales, target_gradients
        )
    r, g = (scales / sums)[:, tf.newaxis], target_gradients[:, tf.newaxis]
    d_x = r * tf.matmul(values, kernel)
    d_x -= g * tf.gather(kernel, targets)
    d_kernel = tf.matmul(values, r * x, transpose_a=True)
    index = tf.cast(targets, tf.int32)[:, tf.newaxis]
    gradients = [d_x, tf.tensor_scatter_nd_sub(d_kernel, index, g * x)]
    if biases:
        d_bias = tf.matmul(values, r, transpose_a=True)[:, 0]
        d_bias = tf.tensor_scatter_nd_sub(d_bias, index, target_gradients)
        gradients.append(tf.cast(d_bias, biases[0].dtype))
    return gradients


def _pull_back_half(
    x: tf.Tensor,
    kernel: tf.Tensor,
    biases: Sequence[tf.Tensor],
    targets: tf.Tensor,
    values: tf.Tensor,
    sums: tf.Tensor,
    scales: tf.Tensor,
    target_gradients: tf.Tensor,
) -> list[tf.Tensor]:
    # The scales stay on the thin side: float16 has no room for small ones.
    c = scales[:, tf.newaxis]
    targets = tf.cast(targets, tf.int32)
    index = tf.stack([tf.range(tf.size(targets)), targets], axis=1)
    shares = tf.math.divide_no_nan(target_gradients, scales)
    d_logits = values * (1.0 / sums)[:, tf.newaxis]
    d_logits = tf.tensor_scatter_nd_sub(d_logits, index, shares)
    half = tf.cast(d_logits, x.dtype)
    d_x = c * tf.cast(tf.matmul(half, kernel), c.dtype)
    scaled_x = tf.cast(c * tf.cast(x, c.dtype), x.dtype)
    gradients = [tf.cast(d_x, x.dtype), tf.matmul(half, scaled_x, transpose_a=True)]
    if biases:
        d_bias = tf.matmul(d_logits, c, transpose_a=True)[:, 0]
        gradients.append(tf.cast(d_bias, biases[0].dtype))
    return gradients
