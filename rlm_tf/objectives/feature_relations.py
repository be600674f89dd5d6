"""Distillation of what examples are to one another; of `feature_distillation`."""

from __future__ import annotations

import math
from typing import NamedTuple

import tensorflow as tf

from rlm_tf.checks import check_floating, check_range, check_shapes
from rlm_tf.numerics import at_least_single, cast_like, multiply_no_nan_log
from rlm_tf.objectives.divergences import unit
from rlm_tf.objectives.feature_pairs import as_rows, loss_of, paired, rows_of_one_batch
from rlm_tf.typing import LossOutput, TensorLike

# Of RKD: weights of distances and angles. Squared distances are at least so much.
_DISTANCES, _ANGLES, _LEAST_SQUARE = 25.0, 50.0, 1e-12
# Probabilities of PKT are at least so much: vectors may be opposite.
_LEAST_PROBABILITY = 1e-12


class RelationalExtra(NamedTuple):
    """By-products of `relational`; they carry no gradient.

    Attributes:
        distance: `[B]`, of distances, without its weight.
        angle: `[B]`, of angles, likewise.
    """

    distance: tf.Tensor
    angle: tf.Tensor


class SelfSupervisedExtra(NamedTuple):
    """By-products of `self_supervised`; they carry no gradient.

    Attributes:
        kept: `[B R]`, 1 where the teacher is right, or nearly: the weights of the mean.
        rank: `[B R]`, how many images the teacher finds more similar than the own one.
    """

    kept: tf.Tensor
    rank: tf.Tensor


def similarity(teacher: TensorLike, student: TensorLike) -> LossOutput:
    """Returns the distance of similarities (SP, Tung and Mori 2019).

        loss_i = sum_j (G_t - G_s)_ij^2 / B,    G = F F^T, rows of length 1

    Args:
        teacher: F_t, `[B, ...]`.
        student: F_s, `[B, ...]`, of any width.

    Returns:
        `loss` `[B]`.

    Raises:
        ValueError: If batches differ.
        TypeError: If features are not floating point.
    """
    dtype, t, s = rows_of_one_batch("similarity", teacher, student)

    def similarities(rows: tf.Tensor) -> tf.Tensor:
        return unit(tf.matmul(rows, rows, transpose_b=True), axis=1)

    difference = similarities(t) - similarities(s)
    return loss_of(dtype, tf.reduce_mean(difference**2, axis=1))


def correlation(teacher: TensorLike, student: TensorLike) -> LossOutput:
    """Returns what neighbours' differences have in common (CC, Peng et al. 2019).

        loss_i = sum_d |s - t|_(i, d) |s - t|_(i + 1, d)

    That is the code of the comparison; the paper compares kernel matrices.

    Args:
        teacher: t, `[B, D]`, projected.
        student: s, `[B, D]`, projected.

    Returns:
        `loss` `[B - 1]`; nothing of a batch of one.

    Raises:
        ValueError: If shapes do not fit.
        TypeError: If features are not floating point.
    """
    dtype, t, s = paired("correlation", teacher, student)
    delta = tf.abs(as_rows(s - t))
    return loss_of(dtype, tf.reduce_sum(delta[:-1] * delta[1:], axis=1))


def relational(teacher: TensorLike, student: TensorLike) -> LossOutput:
    """Returns the difference of distances and angles (RKD, Park et al. 2019).

        loss_i = 25 mean_j h(d_s(i, j) - d_t(i, j))
                 + 50 mean_jk h(cos_s(j, i, k) - cos_t(j, i, k))

    with d the distance over the mean of all that are not of an example to itself, cos
    the cosine of the angle at i, and h(x) = x^2 / 2 up to 1, then |x| - 1/2. Squared
    distances are at least 1e-12, so that points that coincide have a gradient of 0.

    Args:
        teacher: `[B, ...]`.
        student: `[B, ...]`, of any width.

    Returns:
        `loss` `[B]`.

    Raises:
        ValueError: If batches differ.
        TypeError: If features are not floating point.
    """
    dtype, t, s = rows_of_one_batch("relational", teacher, student)
    distance = _huber(_distances(s) - _distances(t), axis=[1])
    angle = _huber(_angles(s) - _angles(t), axis=[1, 2])
    parts = (tf.cast(tf.stop_gradient(part), dtype) for part in (distance, angle))
    loss = _DISTANCES * distance + _ANGLES * angle
    return LossOutput(tf.cast(loss, dtype), RelationalExtra(*parts))


def probabilistic(teacher: TensorLike, student: TensorLike) -> LossOutput:
    """Returns the divergence of neighbourhoods (PKT, Passalis and Tefas 2018).

        loss_i = mean_j p_t(j|i) ln(p_t(j|i) / p_s(j|i)),
        p(j|i) = (1 + cos_ij) / sum_j (1 + cos_ij)

    The mean is why its published weight is 30,000. Probabilities are at least 1e-12
    (the authors' code adds 1e-7 to each).

    Args:
        teacher: `[B, ...]`.
        student: `[B, ...]`, of any width.

    Returns:
        `loss` `[B]`.

    Raises:
        ValueError: If batches differ.
        TypeError: If features are not floating point.
    """
    dtype, t, s = rows_of_one_batch("probabilistic", teacher, student)

    def neighbours(rows: tf.Tensor) -> tf.Tensor:
        directions = unit(rows, axis=1)
        near = (1 + tf.matmul(directions, directions, transpose_b=True)) / 2
        return near / tf.reduce_sum(near, axis=1, keepdims=True)

    p_t, p_s = neighbours(t), neighbours(s)
    log_t, log_s = (tf.math.log(tf.maximum(p, _LEAST_PROBABILITY)) for p in (p_t, p_s))
    return loss_of(dtype, tf.reduce_mean(multiply_no_nan_log(p_t, log_t - log_s), 1))


def contrastive(
    anchors: TensorLike,
    positives: TensorLike,
    negatives: TensorLike,
    *,
    num_examples: int,
    normaliser: float | tf.Tensor,
    temperature: float = 0.07,
) -> LossOutput:
    """Returns one direction of contrastive distillation (CRD, Tian et al. 2020).

        loss = -ln [P+ / (P+ + K / N)] - sum_k ln [(K / N) / (P-_k + K / N)],
        P = exp(a . b / tau) / Z

    a noise-contrastive estimate of whether two representations are of one example. The
    published loss is the sum of this for the student's anchors among the teacher's
    memory and of the other way.

    Args:
        anchors: a, `[B, D]`, of length 1.
        positives: `[B, D]`, of the same examples; no gradient.
        negatives: `[B, K, D]`, of examples of other classes; no gradient.
        num_examples: N, of the training set.
        normaliser: Z, the mean of exp(a . b / tau) in the first batch, times N.
        temperature: tau, positive.

    Returns:
        `loss` `[B]`, at least 0.

    Raises:
        ValueError: If shapes do not fit or a number is not positive.
        TypeError: If features are not floating point.
    """
    name = "contrastive"
    check_floating(name, anchors=anchors, positives=positives, negatives=negatives)
    least = 1e-30
    check_range(name, least, math.inf, num_examples=num_examples)
    check_range(name, least, math.inf, normaliser=normaliser, temperature=temperature)
    dtype = tf.convert_to_tensor(anchors).dtype
    a = at_least_single(anchors)
    near, far = (tf.stop_gradient(cast_like(b, a)) for b in (positives, negatives))
    check_shapes(
        name, anchors=(a, "B D"), positives=(near, "B D"), negatives=(far, "B K D")
    )
    loss = contrast_of_products(
        tf.reduce_sum(a * near, axis=1),
        tf.linalg.matvec(far, a),
        num_examples=num_examples,
        normaliser=normaliser,
        temperature=temperature,
    )
    return loss_of(dtype, loss)


def contrast_of_products(
    positive: tf.Tensor,
    negative: tf.Tensor,
    *,
    num_examples: int,
    normaliser: float | tf.Tensor,
    temperature: float,
) -> tf.Tensor:
    """Returns the loss of `contrastive` `[B]` from inner products a . b.

    Args:
        positive: `[B]`.
        negative: `[B, K]`.
        num_examples: As of `contrastive`.
        normaliser: Likewise.
        temperature: Likewise.
    """
    number = tf.cast(tf.shape(negative)[1], negative.dtype)
    log_noise = tf.math.log(number / cast_like(num_examples, negative))
    log_z = tf.math.log(cast_like(normaliser, negative))
    loss = tf.nn.softplus(log_noise - positive / temperature + log_z)
    excess = negative / temperature - log_z - log_noise
    return loss + tf.reduce_sum(tf.nn.softplus(excess), axis=1)


def self_supervised(
    teacher: TensorLike,
    teacher_rotated: TensorLike,
    student: TensorLike,
    student_rotated: TensorLike,
    *,
    temperature: float = 0.5,
    keep: float = 0.75,
) -> LossOutput:
    """Returns how differently rotated images resemble others (SSKD, Xu et al. 2020).

        loss = T^2 KL(softmax(cos_t / T) || softmax(cos_s / T))

    over the similarities of a rotated image to all B images. Only those count of which
    the teacher finds the own image most similar, and of the others the share `keep`
    that are nearest to it (by rank, then by index): `extra.kept`.

    Args:
        teacher: `[B, D]`, of the images.
        teacher_rotated: `[B, R, D]`, of their R rotations.
        student: `[B, D']`.
        student_rotated: `[B, R, D']`.
        temperature: T, positive.
        keep: Share of the wrong ones that is kept, in [0, 1].

    Returns:
        `loss` `[B R]`, image by image, to be averaged with the weights of `extra`.

    Raises:
        ValueError: If shapes do not fit or a number is out of range.
        TypeError: If features are not floating point.
    """
    name = "self_supervised"
    dtype, t, s = rows_of_one_batch(name, teacher, student)
    check_range(name, 1e-30, math.inf, temperature=temperature)
    check_range(name, 0.0, 1.0, keep=keep)
    check_floating(
        name, teacher_rotated=teacher_rotated, student_rotated=student_rotated
    )
    rotated_t = tf.stop_gradient(cast_like(teacher_rotated, s))
    rotated_s = cast_like(student_rotated, s)
    check_shapes(
        name,
        teacher=(t, "B D"),
        teacher_rotated=(rotated_t, "B R D"),
        student=(s, "B E"),
        student_rotated=(rotated_s, "B R E"),
    )
    cos_t, cos_s = (
        tf.einsum("brd,cd->brc", unit(rotated, axis=2), unit(plain, axis=1))
        for rotated, plain in ((rotated_t, t), (rotated_s, s))
    )
    images = tf.shape(t)[0]
    cos_t, cos_s = (tf.reshape(cos, [-1, images]) for cos in (cos_t, cos_s))
    log_t, log_s = (tf.nn.log_softmax(cos / temperature) for cos in (cos_t, cos_s))
    loss = temperature**2 * tf.reduce_sum(tf.exp(log_t) * (log_t - log_s), axis=1)
    own = tf.repeat(tf.range(images), tf.shape(rotated_t)[1])
    rank = _rank_of(cos_t, own)
    extra = (tf.cast(part, dtype) for part in (_kept(rank, keep), rank))
    return LossOutput(tf.cast(loss, dtype), SelfSupervisedExtra(*extra))


# === Parts ===


def _distances(rows: tf.Tensor) -> tf.Tensor:
    """Returns distances `[B, B]` over their mean; 0 of an example to itself."""
    difference = rows[:, tf.newaxis] - rows
    squares = tf.reduce_sum(difference**2, axis=2)
    number = tf.shape(rows)[0]
    other = 1 - tf.eye(number, dtype=rows.dtype)
    found = tf.sqrt(tf.maximum(squares, _LEAST_SQUARE)) * other
    pairs = tf.cast(tf.maximum(number * (number - 1), 1), rows.dtype)
    mean = tf.reduce_sum(found) / pairs
    return found / tf.where(mean > 0, mean, tf.ones_like(mean))


def _angles(rows: tf.Tensor) -> tf.Tensor:
    """Returns cosines `[B, B, B]` of the angles at the first, between the others."""
    towards = unit(rows[tf.newaxis] - rows[:, tf.newaxis], axis=2)
    return tf.matmul(towards, towards, transpose_b=True)


def _huber(differences: tf.Tensor, axis: list[int]) -> tf.Tensor:
    size = tf.abs(differences)
    smooth = tf.where(size < 1, size**2 / 2, size - 0.5)
    return tf.reduce_mean(smooth, axis=axis)


def _rank_of(values: tf.Tensor, columns: tf.Tensor) -> tf.Tensor:
    """Returns how many entries of each row are larger than that of a column.

    Of equal ones those before it count.
    """
    own = tf.gather(values, columns, batch_dims=1)[:, tf.newaxis]
    places = tf.range(tf.shape(values)[1])
    before = (values == own) & (places < columns[:, tf.newaxis])
    return tf.math.count_nonzero((values > own) | before, axis=1)


def _kept(rank: tf.Tensor, keep: float) -> tf.Tensor:
    """Returns where the rank is 0, or among the lowest share of the others."""
    wrong = rank > 0
    number = tf.cast(tf.math.count_nonzero(wrong), tf.float64)
    # A share such as 0.7 of 10 is not to be 6 by rounding.
    most = tf.cast(tf.floor(keep * number + 1e-9), tf.int64)
    last = tf.where(wrong, rank, rank.dtype.max)
    order = tf.argsort(tf.argsort(last, stable=True))
    return ~wrong | (tf.cast(order, tf.int64) < most)
