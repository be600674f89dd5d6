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
)
from rlm_tf.objectives.divergences import (
    DivergenceExtra,
    agreement_of,
    correlation,
    divergence,
    label_and_others,
    log_sum,
    paired_log_probs,
    paired_logits,
    positive,
    standardised,
    within,
)
from rlm_tf.objectives.lumped_probs import LumpedProbs, lumped_divergence
from rlm_tf.typing import LossOutput, TensorLike


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
    dtype, log_t, log_s = paired_log_probs(
        "kd", teacher_logits, student_logits, temperature
    )
    loss = temperature**2 * divergence(log_t, log_s)
    return LossOutput(tf.cast(loss, dtype), agreement_of(dtype, log_t, log_s))


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
    dtype, log_t, log_s = paired_log_probs(
        name, teacher_logits, student_logits, temperature
    )
    loss = temperature**2 * divergence(log_s, log_t)
    return LossOutput(tf.cast(loss, dtype), agreement_of(dtype, log_t, log_s))


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
    dtype, log_t, log_s = paired_log_probs(
        name, teacher_logits, student_logits, temperature
    )
    weights = tf.constant([math.log(beta), math.log1p(-beta)], log_s.dtype)
    weights = tf.reshape(weights, [2] + log_s.shape.rank * [1])
    log_m = log_mean_exp(tf.stack([log_t, log_s]), log_weights=weights)
    loss = beta * divergence(log_t, log_m) + (1 - beta) * divergence(log_s, log_m)
    loss *= temperature**2
    return LossOutput(tf.cast(loss, dtype), agreement_of(dtype, log_t, log_s))


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
    dtype, log_t, log_s = paired_log_probs(
        name, teacher_logits, student_logits, temperature
    )
    labels = checked_ids(name, "labels", labels)
    check_shapes(name, teacher_logits=(log_t, "... K"), labels=(labels, "..."))
    if log_t.shape[-1] == 1:
        raise ValueError(f"{name}: there must be at least two classes, found 1.")
    label_t, others_t = label_and_others(log_t, labels)
    label_s, others_s = label_and_others(log_s, labels)
    rest_t, rest_s = log_sum(others_t), log_sum(others_s)
    label = temperature**2 * divergence(
        tf.stack([label_t, rest_t], axis=-1), tf.stack([label_s, rest_s], axis=-1)
    )
    others = temperature**2 * divergence(
        within(others_t, rest_t), within(others_s, rest_s)
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
    dtype, log_t, log_s = paired_log_probs(
        name, teacher_logits, student_logits, temperature
    )
    check_shapes(name, teacher_logits=(log_t, "B K"))
    p_t, p_s = tf.exp(log_t), tf.exp(log_s)
    inter = 1 - correlation(p_t, p_s, axis=1)
    intra = 1 - correlation(p_t, p_s, axis=0)
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
        teacher_logits: `[..., K]`, K >= 2. Minus infinity, of a class that cannot be,
            counts neither in means nor in deviations.
        student_logits: `[..., K]`, likewise.
        temperature: T, positive.

    Returns:
        `loss` `[...]`, T^2 KL.

    Raises:
        ValueError: If shapes do not fit or T is not positive.
        TypeError: If logits are not floating point.
    """
    name = "standardised_kd"
    dtype, teacher, student = paired_logits(
        name, teacher_logits, student_logits, temperature
    )
    found = kd(standardised(teacher), standardised(student), temperature=temperature)
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
    student = at_least_single(student_logits) / positive(name, temperature)
    log_p = tf.stop_gradient(cast_like(top_log_probs, student))
    check_shapes(
        name,
        top_ids=(ids, "... k"),
        top_log_probs=(log_p, "... k"),
        student_logits=(student, "... K"),
    )
    size = tf.shape(student)[-1]
    ids_of_rows, log_p = (tf.reshape(x, [-1, tf.shape(x)[-1]]) for x in (ids, log_p))
    probs = LumpedProbs.of_words(ids_of_rows, log_p, size)
    found = lumped_divergence(tf.reshape(student, [-1, size]), probs)
    loss = temperature**2 * found.loss
    rest = tf.exp(tf.stop_gradient(found.log_rest))
    loss, rest = (
        tf.ensure_shape(
            tf.reshape(tf.cast(x, dtype), tf.shape(ids)[:-1]), ids.shape[:-1]
        )
        for x in (loss, rest)
    )
    return LossOutput(loss, LumpedExtra(rest))


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
