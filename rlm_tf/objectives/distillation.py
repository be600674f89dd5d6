"""Knowledge distillation: a student's outputs are to be a teacher's.

Divergences of softmax outputs at a temperature T (Hinton, Vinyals and Dean 2015), as
chapter 2 of Dong (2025) uses them, and their rivals. Arguments are (teacher, student),
as in Keras; losses are by example (or position), in nats; no gradient reaches the
teacher. All but `dist` see each row of logits alone: leading axes are free.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import tensorflow as tf

from rlm_tf.checks import check_floating, check_option, check_shapes, checked_ids
from rlm_tf.numerics import (
    at_least_single,
    cast_like,
    log_mean_exp,
    multiply_no_nan_log,
)
from rlm_tf.typing import LossOutput, TensorLike


class DivergenceExtra(NamedTuple):
    """By-products of a divergence; they carry no gradient.

    Attributes:
        agreement: `[...]`, 1 where both hold the same class for the most probable.
    """

    agreement: tf.Tensor


class DecoupledExtra(NamedTuple):
    """By-products of `decoupled_kd`; they carry no gradient.

    Attributes:
        label: `[...]`, T^2 times the KL of (label, rest), without its weight.
        others: `[...]`, T^2 times the KL within the rest, likewise.
    """

    label: tf.Tensor
    others: tf.Tensor


class DistExtra(NamedTuple):
    """By-products of `dist`; they carry no gradient.

    Attributes:
        inter: `[B]`, 1 - correlation over classes.
        intra: `[K]`, 1 - correlation over the batch.
    """

    inter: tf.Tensor
    intra: tf.Tensor


class LumpedExtra(NamedTuple):
    """By-products of `lumped_kd`; they carry no gradient.

    Attributes:
        rest: `[...]`, the student's probability of all but the k classes.
    """

    rest: tf.Tensor


def kd(
    teacher_logits: TensorLike, student_logits: TensorLike, *, temperature: float
) -> LossOutput:
    """Returns the loss of Hinton et al. (2015), a divergence at a temperature.

        loss = T^2 KL(p_t || p_s),    p = softmax(z / T)

    Its gradient for the student's logits is T (p_s - p_t); as T grows, the loss tends
    to half the mean squared difference of centred logits (sum over classes / K).

    Args:
        teacher_logits: `[..., K]`; minus infinity stands for a probability of 0.
        student_logits: `[..., K]`.
        temperature: T, positive.

    Returns:
        `loss` `[...]`, at least 0.

    Raises:
        ValueError: If shapes do not fit or T is not positive.
        TypeError: If logits are not floating point.
    """
    dtype, log_t, log_s = _log_probs("kd", teacher_logits, student_logits, temperature)
    loss = temperature**2 * _divergence(log_t, log_s)
    return LossOutput(tf.cast(loss, dtype), _agreement(dtype, log_t, log_s))


def reverse_kd(
    teacher_logits: TensorLike, student_logits: TensorLike, *, temperature: float
) -> LossOutput:
    """Returns the divergence the other way: the student seeks modes of the teacher.

        loss = T^2 KL(p_s || p_t)

    Args:
        teacher_logits: `[..., K]`; where it is minus infinity and the student's is not,
            the loss is infinite.
        student_logits: `[..., K]`.
        temperature: T, positive.

    Returns:
        `loss` `[...]`, at least 0.

    Raises:
        ValueError: If shapes do not fit or T is not positive.
        TypeError: If logits are not floating point.
    """
    name = "reverse_kd"
    dtype, log_t, log_s = _log_probs(name, teacher_logits, student_logits, temperature)
    loss = temperature**2 * _divergence(log_s, log_t)
    return LossOutput(tf.cast(loss, dtype), _agreement(dtype, log_t, log_s))


def generalised_jsd(
    teacher_logits: TensorLike,
    student_logits: TensorLike,
    *,
    beta: float,
    temperature: float = 1.0,
) -> LossOutput:
    """Returns what lies between both (Agarwal et al. 2024, arXiv 2306.13649).

        loss = T^2 [b KL(p_t || m) + (1 - b) KL(p_s || m)],    m = b p_t + (1 - b) p_s

    It is at most T^2 times the entropy of (b, 1 - b), whatever the logits. Over b it
    tends to `kd` as b falls to 0, over 1 - b to `reverse_kd` as b rises to 1.

    Args:
        teacher_logits: `[..., K]`; minus infinity stands for a probability of 0.
        student_logits: `[..., K]`.
        beta: b, in (0, 1).
        temperature: T, positive.

    Returns:
        `loss` `[...]`, at least 0.

    Raises:
        ValueError: If shapes do not fit, T is not positive or b not within (0, 1).
        TypeError: If logits are not floating point.
    """
    name = "generalised_jsd"
    if not 0 < beta < 1:
        raise ValueError(
            f"{name}: `beta` must lie in (0, 1), found {beta!r}; its ends are `kd` and "
            "`reverse_kd`."
        )
    dtype, log_t, log_s = _log_probs(name, teacher_logits, student_logits, temperature)
    weights = tf.constant([math.log(beta), math.log1p(-beta)], log_s.dtype)
    weights = tf.reshape(weights, [2] + log_s.shape.rank * [1])
    log_m = log_mean_exp(tf.stack([log_t, log_s]), log_weights=weights)
    loss = beta * _divergence(log_t, log_m) + (1 - beta) * _divergence(log_s, log_m)
    loss *= temperature**2
    return LossOutput(tf.cast(loss, dtype), _agreement(dtype, log_t, log_s))


def decoupled_kd(
    teacher_logits: TensorLike,
    student_logits: TensorLike,
    labels: TensorLike,
    *,
    alpha: float,
    beta: float,
    temperature: float,
) -> LossOutput:
    """Returns `kd` in two parts with weights of their own (Zhao et al. 2022).

        loss = T^2 [alpha KL(b_t || b_s) + beta KL(q_t || q_s)]

    with b = (p[y], 1 - p[y]) of the label y and q the distribution within the other
    classes. `kd` has alpha = 1 and beta = 1 - p_t[y]: what a sure teacher says of other
    classes counts little there.

    Args:
        teacher_logits: `[..., K]`, K >= 2; minus infinity stands for a probability of
            0.
        student_logits: `[..., K]`.
        labels: y, int `[...]`.
        alpha: Weight of the label's part.
        beta: Weight of the other part.
        temperature: T, positive.

    Returns:
        `loss` `[...]`.

    Raises:
        ValueError: If shapes do not fit, labels are no integers or T not positive.
        TypeError: If logits are not floating point.
    """
    name = "decoupled_kd"
    dtype, log_t, log_s = _log_probs(name, teacher_logits, student_logits, temperature)
    labels = checked_ids(name, "labels", labels)
    check_shapes(name, teacher_logits=(log_t, "... K"), labels=(labels, "..."))
    if log_t.shape[-1] == 1:
        raise ValueError(f"{name}: there must be at least two classes, found 1.")
    label_t, others_t = _label_and_others(log_t, labels)
    label_s, others_s = _label_and_others(log_s, labels)
    rest_t, rest_s = _log_sum(others_t), _log_sum(others_s)
    label = temperature**2 * _divergence(
        tf.stack([label_t, rest_t], axis=-1), tf.stack([label_s, rest_s], axis=-1)
    )
    others = temperature**2 * _divergence(
        _less(others_t, rest_t), _less(others_s, rest_s)
    )
    loss = alpha * label + beta * others
    parts = (tf.cast(tf.stop_gradient(part), dtype) for part in (label, others))
    return LossOutput(tf.cast(loss, dtype), DecoupledExtra(*parts))


def dist(
    teacher_logits: TensorLike,
    student_logits: TensorLike,
    *,
    beta: float,
    gamma: float,
    temperature: float,
) -> LossOutput:
    """Returns 1 - correlation, over classes and over the batch (Huang et al. 2022).

        loss_i = T^2 [beta (1 - r(p_t[i], p_s[i]))
                      + gamma mean_k (1 - r(p_t[:, k], p_s[:, k]))]

    with Pearson's r, 0 where one side does not vary (as in a batch of one).

    Args:
        teacher_logits: `[B, K]`, B examples that are compared with one another.
        student_logits: `[B, K]`.
        beta: Weight of the part by example.
        gamma: Weight of the part by class.
        temperature: T, positive.

    Returns:
        `loss` `[B]`; its mean is the published scalar.

    Raises:
        ValueError: If shapes do not fit or T is not positive.
        TypeError: If logits are not floating point.
    """
    name = "dist"
    dtype, log_t, log_s = _log_probs(name, teacher_logits, student_logits, temperature)
    check_shapes(name, teacher_logits=(log_t, "B K"))
    p_t, p_s = tf.exp(log_t), tf.exp(log_s)
    inter = 1 - _correlation(p_t, p_s, axis=1)
    intra = 1 - _correlation(p_t, p_s, axis=0)
    loss = temperature**2 * (beta * inter + gamma * tf.reduce_mean(intra))
    parts = (tf.cast(tf.stop_gradient(part), dtype) for part in (inter, intra))
    return LossOutput(tf.cast(loss, dtype), DistExtra(*parts))


def standardised_kd(
    teacher_logits: TensorLike, student_logits: TensorLike, *, temperature: float
) -> LossOutput:
    """Returns `kd` of logits less their mean, over their deviation (Sun et al. 2024).

    The student then learns the order and the relative gaps of the teacher's logits, not
    their scale. The deviation is that of a sample (K - 1 in the denominator); logits
    that do not vary become 0.

    Args:
        teacher_logits: `[..., K]`, finite, K >= 2.
        student_logits: `[..., K]`.
        temperature: T, positive.

    Returns:
        `loss` `[...]`, T^2 KL.

    Raises:
        ValueError: If shapes do not fit or T is not positive.
        TypeError: If logits are not floating point.
    """
    name = "standardised_kd"
    dtype, teacher, student = _logits(name, teacher_logits, student_logits, temperature)
    found = kd(_standardised(teacher), _standardised(student), temperature=temperature)
    agreement = tf.cast(found.extra.agreement, dtype)
    return LossOutput(tf.cast(found.loss, dtype), DivergenceExtra(agreement))


def lumped_kd(
    top_ids: TensorLike,
    top_log_probs: TensorLike,
    student_logits: TensorLike,
    *,
    temperature: float = 1.0,
) -> LossOutput:
    """Returns `kd` from the k most probable classes of a teacher alone.

        loss = T^2 [sum_(i in top) p_i ln(p_i / q_i) + p_rest ln(p_rest / q_rest)]

    All other classes are one lump. That is a lower bound of `kd` (the log-sum
    inequality), exact at k = K.

    Args:
        top_ids: Int `[..., k]`, the classes, without repetition.
        top_log_probs: `[..., k]`, their log-probabilities at the temperature; a lump
            has no other.
        student_logits: `[..., K]`.
        temperature: T, positive.

    Returns:
        `loss` `[...]`.

    Raises:
        ValueError: If shapes do not fit, ids are no integers or T not positive.
        TypeError: If log-probabilities or logits are not floating point.
    """
    name = "lumped_kd"
    check_floating(name, top_log_probs=top_log_probs, student_logits=student_logits)
    ids = checked_ids(name, "top_ids", top_ids)
    dtype = tf.convert_to_tensor(student_logits).dtype
    student = at_least_single(student_logits) / _positive(name, temperature)
    log_p = tf.stop_gradient(cast_like(top_log_probs, student))
    check_shapes(
        name,
        top_ids=(ids, "... k"),
        top_log_probs=(log_p, "... k"),
        student_logits=(student, "... K"),
    )
    log_q = tf.nn.log_softmax(student)
    top = tf.gather(log_q, ids, batch_dims=ids.shape.rank - 1)
    # Not by 1 - sum q: that is rounding where the student is sure.
    depth = student.shape[-1] or tf.shape(student)[-1]
    chosen = tf.reduce_any(tf.one_hot(ids, depth, True, False, dtype=tf.bool), axis=-2)
    log_rest = _log_sum(tf.where(chosen, -math.inf, log_q))
    p_rest = tf.maximum(1 - tf.reduce_sum(tf.exp(log_p), axis=-1), 0)
    # What rounding leaves where there is no other class.
    p_rest = tf.where(tf.reduce_all(chosen, axis=-1), tf.zeros_like(p_rest), p_rest)
    loss = _divergence(
        tf.concat([log_p, _safe_log(p_rest)[..., tf.newaxis]], axis=-1),
        tf.concat([top, log_rest[..., tf.newaxis]], axis=-1),
    )
    rest = tf.cast(tf.stop_gradient(tf.exp(log_rest)), dtype)
    return LossOutput(tf.cast(temperature**2 * loss, dtype), LumpedExtra(rest))


def correctness_ranking(
    probs: TensorLike, correctness: TensorLike, *, ties: str = "thesis"
) -> LossOutput:
    """Returns how far confidences are from the order of past correctness (B.24).

        loss_i = max(0, -g (p_i - p_j) + |c_i - c_j|),    j = i + 1, or the first

    with g = 1 where c_i > c_j, else -1 (Moon et al. 2020): a teacher is to be surer of
    what it has been right about more often.

    Args:
        probs: p, `[B]`, the probability of the most probable class.
        correctness: c, `[B]`, the share of past passes in which the example was right;
            no gradient.
        ties: `"thesis"`: g = -1 where c_i = c_j, so that p_i > p_j costs there;
            `"authors"`: g = 0, such pairs cost nothing.

    Returns:
        `loss` `[B]`, at least 0.

    Raises:
        ValueError: If shapes do not fit or `ties` is another.
        TypeError: If an argument is not floating point.
    """
    name = "correctness_ranking"
    check_option(name, "ties", ties, ("thesis", "authors"))
    check_floating(name, probs=probs, correctness=correctness)
    dtype = tf.convert_to_tensor(probs).dtype
    p = at_least_single(probs)
    c = tf.stop_gradient(cast_like(correctness, p))
    check_shapes(name, probs=(p, "B"), correctness=(c, "B"))
    gap = c - tf.roll(c, -1, axis=0)
    sign = tf.sign(gap)
    if ties == "thesis":
        sign = tf.where(gap > 0, tf.ones_like(gap), -tf.ones_like(gap))
    loss = tf.nn.relu(-sign * (p - tf.roll(p, -1, axis=0)) + tf.abs(gap))
    return LossOutput(tf.cast(loss, dtype), None)


# === Parts ===


def _positive(name: str, temperature: float) -> float:
    if not (math.isfinite(temperature) and temperature > 0):
        raise ValueError(
            f"{name}: `temperature` must be finite and positive, found {temperature!r}."
        )
    return temperature


def _logits(
    name: str, teacher: TensorLike, student: TensorLike, temperature: float
) -> tuple[tf.DType, tf.Tensor, tf.Tensor]:
    """Returns the student's dtype, and both logits, at least in single precision."""
    check_floating(name, teacher_logits=teacher, student_logits=student)
    _positive(name, temperature)
    dtype = tf.convert_to_tensor(student).dtype
    student = at_least_single(student)
    teacher = tf.stop_gradient(cast_like(teacher, student))
    check_shapes(
        name, teacher_logits=(teacher, "... K"), student_logits=(student, "... K")
    )
    return dtype, teacher, student


def _log_probs(
    name: str, teacher: TensorLike, student: TensorLike, temperature: float
) -> tuple[tf.DType, tf.Tensor, tf.Tensor]:
    """Returns the student's dtype, and both log-probabilities at the temperature."""
    dtype, teacher, student = _logits(name, teacher, student, temperature)
    log_t, log_s = (
        tf.nn.log_softmax(logits / temperature) for logits in (teacher, student)
    )
    return dtype, log_t, log_s


def _divergence(log_p: tf.Tensor, log_q: tf.Tensor) -> tf.Tensor:
    """Returns KL(p || q) over the last axis; classes that p has not count nothing."""
    p = tf.exp(log_p)
    return tf.reduce_sum(
        multiply_no_nan_log(p, log_p) - multiply_no_nan_log(p, log_q), axis=-1
    )


def _agreement(dtype: tf.DType, log_t: tf.Tensor, log_s: tf.Tensor) -> DivergenceExtra:
    same = tf.argmax(log_t, axis=-1) == tf.argmax(log_s, axis=-1)
    return DivergenceExtra(tf.cast(same, dtype))


def _label_and_others(
    log_probs: tf.Tensor, labels: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns log-probabilities `[...]` of labels, and all with those at -inf."""
    depth = log_probs.shape[-1] or tf.shape(log_probs)[-1]
    own = tf.one_hot(labels, depth, True, False, dtype=tf.bool)
    label = tf.gather(log_probs, labels, batch_dims=labels.shape.rank)
    return label, tf.where(own, -math.inf, log_probs)


def _log_sum(log_values: tf.Tensor) -> tf.Tensor:
    """Returns the logarithm of sums; of nothing minus infinity, without gradient."""
    nothing = tf.reduce_all(log_values == -math.inf, axis=-1)
    safe = tf.where(nothing[..., tf.newaxis], 0.0, log_values)
    return tf.where(nothing, -math.inf, tf.reduce_logsumexp(safe, axis=-1))


def _less(log_values: tf.Tensor, log_sum: tf.Tensor) -> tf.Tensor:
    """Returns log-probabilities within a sum; of a sum of nothing minus infinity."""
    finite = tf.where(log_sum == -math.inf, tf.zeros_like(log_sum), log_sum)
    return log_values - finite[..., tf.newaxis]


def _safe_log(values: tf.Tensor) -> tf.Tensor:
    """Returns logarithms of constants, minus infinity of 0."""
    some = values > 0
    return tf.where(some, tf.math.log(tf.where(some, values, 1.0)), -math.inf)


def _correlation(x: tf.Tensor, y: tf.Tensor, axis: int) -> tf.Tensor:
    """Returns Pearson's correlation; 0, without gradient, where one does not vary."""
    x -= tf.reduce_mean(x, axis=axis, keepdims=True)
    y -= tf.reduce_mean(y, axis=axis, keepdims=True)
    squares = tf.reduce_sum(x * x, axis=axis) * tf.reduce_sum(y * y, axis=axis)
    varies = squares > 0
    root = tf.sqrt(tf.where(varies, squares, tf.ones_like(squares)))
    inner = tf.reduce_sum(x * y, axis=axis)
    return tf.where(varies, inner / root, tf.zeros_like(inner))


def _standardised(logits: tf.Tensor) -> tf.Tensor:
    """Returns logits less their mean, over their deviation as that of a sample.

    To which the authors' code adds 1e-7.
    """
    centred = logits - tf.reduce_mean(logits, axis=-1, keepdims=True)
    freedom = tf.cast(tf.maximum(tf.shape(logits)[-1] - 1, 1), logits.dtype)
    variance = tf.reduce_sum(centred**2, axis=-1, keepdims=True) / freedom
    varies = variance > 0
    root = tf.sqrt(tf.where(varies, variance, tf.ones_like(variance)))
    return tf.where(varies, centred / (root + 1e-7), tf.zeros_like(centred))
