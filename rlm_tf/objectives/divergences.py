"""What losses of `distillation` are made of: logits in pairs, divergences, sums."""

from __future__ import annotations

import math
from typing import NamedTuple

import tensorflow as tf

from rlm_tf.checks import check_floating, check_shapes
from rlm_tf.numerics import at_least_single, cast_like, multiply_no_nan_log
from rlm_tf.typing import TensorLike

# Logarithms of ratios of probabilities below this are terms of a series, to so high a
# power; the first that is left out is below the rounding of float64.
_NEAR, _TERMS = 0.02, 8


class DivergenceExtra(NamedTuple):
    """By-products of a divergence; they carry no gradient.

    Attributes:
        agreement: `[...]`, 1 where both hold the same class for the most probable.
    """

    agreement: tf.Tensor


def positive(name: str, temperature: float) -> float:
    """Returns the temperature of the loss `name`, which must be finite and positive.

    Raises:
        ValueError: if it is not.
    """
    if not (math.isfinite(temperature) and temperature > 0):
        raise ValueError(
            f"{name}: `temperature` must be finite and positive, found {temperature!r}."
        )
    return temperature


def paired_logits(
    name: str, teacher: TensorLike, student: TensorLike, temperature: float
) -> tuple[tf.DType, tf.Tensor, tf.Tensor]:
    """Returns the student's dtype, and both logits, at least in single precision."""
    check_floating(name, teacher_logits=teacher, student_logits=student)
    positive(name, temperature)
    dtype = tf.convert_to_tensor(student).dtype
    student = at_least_single(student)
    teacher = tf.stop_gradient(cast_like(teacher, student))
    check_shapes(
        name, teacher_logits=(teacher, "... K"), student_logits=(student, "... K")
    )
    return dtype, teacher, student


def paired_log_probs(
    name: str, teacher: TensorLike, student: TensorLike, temperature: float
) -> tuple[tf.DType, tf.Tensor, tf.Tensor]:
    """Returns the student's dtype, and both log-probabilities at the temperature."""
    dtype, teacher, student = paired_logits(name, teacher, student, temperature)
    log_t, log_s = (
        tf.nn.log_softmax(logits / temperature) for logits in (teacher, student)
    )
    return dtype, log_t, log_s


def divergence(log_p: tf.Tensor, log_q: tf.Tensor) -> tf.Tensor:
    """Returns KL(p || q) over the last axis; classes that p has not count nothing.

    As both sum to 1, it is the sum of p ln(p / q) - p + q, of which no term is
    negative: what differs little, as at a high temperature, does not cancel. Of a p
    without any class it is 0.
    """
    p, q = tf.exp(log_p), tf.exp(log_q)
    q *= tf.cast(tf.reduce_any(p > 0, axis=-1, keepdims=True), q.dtype)
    ratio = log_p - log_q
    is_near = tf.abs(ratio) < _NEAR
    near = p * _small_terms(tf.where(is_near, ratio, tf.zeros_like(ratio)))
    far = multiply_no_nan_log(p, log_p) - multiply_no_nan_log(p, log_q) - p + q
    return tf.reduce_sum(tf.where(is_near, near, far), axis=-1)


def _small_terms(r: tf.Tensor) -> tf.Tensor:
    """Returns r - 1 + exp(-r) of r up to `_NEAR`, by its series."""
    found = tf.ones_like(r)
    for number in range(_TERMS, 2, -1):
        found = 1 - r / number * found
    return r * r / 2 * found


def agreement_of(
    dtype: tf.DType, log_t: tf.Tensor, log_s: tf.Tensor
) -> DivergenceExtra:
    """Returns where log-probabilities `[..., K]` of both agree on the largest class."""
    same = tf.argmax(log_t, axis=-1) == tf.argmax(log_s, axis=-1)
    return DivergenceExtra(tf.cast(same, dtype))


def label_and_others(
    log_probs: tf.Tensor, labels: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns log-probabilities `[...]` of labels, and all with those at -inf."""
    depth = log_probs.shape[-1] or tf.shape(log_probs)[-1]
    own = tf.one_hot(labels, depth, True, False, dtype=tf.bool)
    label = tf.gather(log_probs, labels, batch_dims=labels.shape.rank)
    return label, tf.where(own, -math.inf, log_probs)


def log_sum(log_values: tf.Tensor) -> tf.Tensor:
    """Returns the logarithm of sums; of nothing minus infinity, without gradient."""
    nothing = tf.reduce_all(log_values == -math.inf, axis=-1)
    safe = tf.where(nothing[..., tf.newaxis], 0.0, log_values)
    return tf.where(nothing, -math.inf, tf.reduce_logsumexp(safe, axis=-1))


def safe_log(values: tf.Tensor) -> tf.Tensor:
    """Returns logarithms of constants, minus infinity of 0."""
    some = values > 0
    return tf.where(some, tf.math.log(tf.where(some, values, 1.0)), -math.inf)


def within(log_values: tf.Tensor, log_sum: tf.Tensor) -> tf.Tensor:
    """Returns log-probabilities within a sum; of a sum of nothing minus infinity."""
    finite = tf.where(log_sum == -math.inf, tf.zeros_like(log_sum), log_sum)
    return log_values - finite[..., tf.newaxis]


def correlation(x: tf.Tensor, y: tf.Tensor, axis: int) -> tf.Tensor:
    """Returns Pearson's correlation; 0, without gradient, where one does not vary."""
    x -= tf.reduce_mean(x, axis=axis, keepdims=True)
    y -= tf.reduce_mean(y, axis=axis, keepdims=True)
    # Each to length 1 first: products of squares of small numbers are 0.
    x, y = unit(x, axis), unit(y, axis)
    return tf.reduce_sum(x * y, axis=axis)


def unit(values: tf.Tensor, axis: int) -> tf.Tensor:
    """Returns vectors of length 1; 0, without gradient, stays 0."""
    # Lengths do not matter, so squares need not be as small as numbers may be.
    largest = tf.stop_gradient(tf.reduce_max(tf.abs(values), axis=axis, keepdims=True))
    none = largest == 0
    scaled = values / tf.where(none, tf.ones_like(largest), largest)
    squares = tf.reduce_sum(scaled * scaled, axis=axis, keepdims=True)
    root = tf.sqrt(tf.where(none, tf.ones_like(squares), squares))
    return tf.where(none, tf.zeros_like(values), scaled / root)


def standardised(logits: tf.Tensor) -> tf.Tensor:
    """Returns logits less their mean, over their deviation as that of a sample.

    To which the authors' code adds 1e-7. Logits of minus infinity, of classes that
    cannot be, stay and count in neither.
    """
    is_finite = tf.math.is_finite(logits) | tf.math.is_nan(logits)
    there = tf.cast(is_finite, logits.dtype)
    safe = tf.where(is_finite, logits, tf.zeros_like(logits))
    number = tf.reduce_sum(there, axis=-1, keepdims=True)
    mean = tf.math.divide_no_nan(tf.reduce_sum(safe, axis=-1, keepdims=True), number)
    centred = there * (safe - mean)
    freedom = tf.maximum(number - 1, 1)
    variance = tf.reduce_sum(centred**2, axis=-1, keepdims=True) / freedom
    varies = variance > 0
    root = tf.sqrt(tf.where(varies, variance, tf.ones_like(variance)))
    found = tf.where(varies, centred / (root + 1e-7), tf.zeros_like(centred))
    return tf.where(is_finite, found, logits)
