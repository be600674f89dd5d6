"""Numerically safe building blocks in log space."""

from __future__ import annotations

import math

import tensorflow as tf

from rlm_tf.typing import TensorLike


def log_mean_exp(
    values: tf.Tensor, axis: int = 0, log_weights: tf.Tensor | None = None
) -> tf.Tensor:
    """Returns the log of the (weighted) mean of `exp(values)` along one axis.

    Computes `log sum_k w_k exp(v_k)` with `w` = softmax of `log_weights` along `axis`,
    uniform when `log_weights` is None. Entries of minus infinity stand for zeros; where
    every entry is minus infinity, so is the result, and its gradient is zero.

    Args:
        values: `[..., K, ...]`, floating point.
        axis: The axis of size K.
        log_weights: Unnormalised log-weights that broadcast against `values`, or None.

    Returns:
        `values` without `axis`, same dtype.
    """
    values = tf.convert_to_tensor(values)
    dtype = values.dtype
    # float16 cannot add up more than 65,504 ones.
    values = at_least_single(values)
    minus_infinity = tf.constant(-math.inf, values.dtype)
    if log_weights is None:
        values -= tf.math.log(tf.cast(tf.shape(values)[axis], values.dtype))
    else:
        log_weights = tf.cast(log_weights, values.dtype)
        log_weights -= tf.reduce_logsumexp(log_weights, axis=axis, keepdims=True)
        values += log_weights
    # The derivative of log at a sum of zero would be infinite.
    nothing = tf.reduce_max(values, axis=axis, keepdims=True) == -math.inf
    values = tf.where(nothing, tf.zeros_like(values), values)
    result = tf.reduce_logsumexp(values, axis=axis)
    result = tf.where(
        tf.squeeze(nothing, axis), tf.fill(tf.shape(result), minus_infinity), result
    )
    return tf.cast(result, dtype)


def replace_gradient(value: tf.Tensor, surrogate: tf.Tensor) -> tf.Tensor:
    """Returns `value` forwards and the gradient of `surrogate` backwards.

    Args:
        value: Any floating-point tensor; gets no gradient.
        surrogate: Tensor of the same shape and dtype that carries the gradient, of any
            size. Where it is not finite, nor is its gradient as a rule, and the result
            is not-a-number.
    """
    # The surrogate is subtracted from itself: beside a large one, `value` would vanish.
    return tf.stop_gradient(value) + (surrogate - tf.stop_gradient(surrogate))


def multiply_no_nan_log(probs: tf.Tensor, log_values: tf.Tensor) -> tf.Tensor:
    """Returns `probs * log_values` with `0 * -inf = 0`, in value and in gradient."""
    safe = tf.where(probs > 0, log_values, tf.zeros_like(log_values))
    return probs * safe


def cast_like(value: TensorLike | float, tensor: tf.Tensor) -> tf.Tensor:
    """Returns `value` in the dtype of `tensor`, and no less exact than that.

    `tf.cast` takes numbers and lists through single precision.
    """
    return tf.cast(tf.convert_to_tensor(value, dtype_hint=tensor.dtype), tensor.dtype)


def at_least_single(tensor: tf.Tensor) -> tf.Tensor:
    """Returns half-precision tensors in single precision, others as they are."""
    tensor = tf.convert_to_tensor(tensor)
    return tensor if tensor.dtype == tf.float64 else tf.cast(tensor, tf.float32)


def perplexity(nats_per_token: float) -> float:
    """Returns `exp(nats_per_token)`, infinite instead of an OverflowError."""
    return math.inf if nats_per_token >= 709.0 else math.exp(nats_per_token)


def rounded_product(x: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
    """Returns `x K^T` rounded to the nearest in its dtype, on every processor.

    Those that cannot multiply bfloat16 cut the digits off that do not fit. That moves
    all logits one way, by more than what gradients near an optimum are made of.

    Args:
        x: `[N, D]`.
        kernel: K, `[V, D]`, of the same dtype.
    """
    if x.dtype != tf.bfloat16:
        return tf.matmul(x, kernel, transpose_b=True)
    wide = tf.cast(x, tf.float32), tf.cast(kernel, tf.float32)
    return tf.cast(tf.matmul(*wide, transpose_b=True), tf.bfloat16)
