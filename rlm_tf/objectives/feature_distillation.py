"""Distillation of features: a student's layers are to be like a teacher's.

The methods that chapter 2 of Dong (2025) compares, as their common code has them
(Tian, Krishnan and Isola 2020, arXiv 1910.10699); where a method's own paper differs,
the docstring says so. Arguments are (teacher, student); losses are by example, so that
their mean is the published scalar; no gradient reaches the teacher. Features are
vectors `[B, D]` or maps `[B, H, W, C]`; half precision is computed in single.
"""

from __future__ import annotations

import tensorflow as tf

from rlm_tf.numerics import cast_like
from rlm_tf.objectives.divergences import unit
from rlm_tf.objectives.feature_pairs import (
    as_pixels,
    as_rows,
    loss_of,
    maps_of_one_size,
    paired,
)
from rlm_tf.objectives.feature_relations import (
    contrastive,
    correlation,
    probabilistic,
    relational,
    self_supervised,
    similarity,
)
from rlm_tf.typing import LossOutput, TensorLike

__all__ = [
    "activation_boundary",
    "attention",
    "contrastive",
    "correlation",
    "factor",
    "fitnet",
    "neuron_selectivity",
    "probabilistic",
    "relational",
    "self_supervised",
    "similarity",
    "variational",
]


def fitnet(teacher: TensorLike, student: TensorLike) -> LossOutput:
    """Returns FitNets' mean squared difference (Romero et al. 2015).

        loss = mean (s - t)^2

    Args:
        teacher: t, `[B, ...]`.
        student: s, `[B, ...]`, the student's features behind a trained projection.

    Returns:
        `loss` `[B]`.

    Raises:
        ValueError: If shapes do not fit.
        TypeError: If features are not floating point.
    """
    dtype, t, s = paired("fitnet", teacher, student)
    return loss_of(dtype, tf.reduce_mean(as_rows(s - t) ** 2, axis=1))


def variational(
    teacher: TensorLike, mean: TensorLike, variance: TensorLike
) -> LossOutput:
    """Returns minus a bound of mutual information (VID, Ahn et al. 2019).

        loss = mean ((mu - t)^2 / var + ln var) / 2

    Args:
        teacher: t, `[B, ...]`; the larger map is averaged to the size of the smaller.
        mean: mu, like t, of the student's features.
        variance: var, positive, one a channel: broadcasts against t.

    Returns:
        `loss` `[B]`, in nats but for ln(2 pi) / 2; of any sign.

    Raises:
        ValueError: If shapes do not fit.
        TypeError: If features are not floating point.
    """
    dtype, t, mu = paired("variational", teacher, mean, pooled=True)
    var = cast_like(variance, mu)
    loss = ((mu - t) ** 2 / var + tf.math.log(var)) / 2
    return loss_of(dtype, tf.reduce_mean(as_rows(loss), axis=1))


def activation_boundary(
    teacher: TensorLike, student: TensorLike, *, margin: float = 1.0
) -> LossOutput:
    """Returns how far neurons are from the teacher's side (AB, Heo et al. 2019).

        loss = sum (s + m)^2 [s > -m, t <= 0] + (s - m)^2 [s <= m, t > 0]

    The weights by layer and 3 / 1000 that the authors multiply are the caller's.

    Args:
        teacher: t, `[B, ...]`, before the activation.
        student: s, the same.
        margin: m.

    Returns:
        `loss` `[B]`.

    Raises:
        ValueError: If shapes do not fit.
        TypeError: If features are not floating point.
    """
    dtype, t, s = paired("activation_boundary", teacher, student)
    zero = tf.zeros_like(s)
    off = tf.where((s > -margin) & (t <= 0), s + margin, zero)
    on = tf.where((s <= margin) & (t > 0), s - margin, zero)
    return loss_of(dtype, tf.reduce_sum(as_rows(off**2 + on**2), axis=1))


# === Maps ===


def attention(teacher: TensorLike, student: TensorLike) -> LossOutput:
    """Returns the distance of attention maps (AT, Zagoruyko and Komodakis 2017).

        loss = mean (a(s) - a(t))^2,    a(f) = u / |u|, u = mean_c f_c^2, flattened

    Args:
        teacher: `[B, H, W, C]`; the larger map is averaged to the size of the smaller.
        student: `[B, H', W', C']`.

    Returns:
        `loss` `[B]`.

    Raises:
        ValueError: If these are no maps of one batch.
        TypeError: If features are not floating point.
    """
    dtype, t, s = maps_of_one_size("attention", teacher, student)
    difference = _attention_of(s) - _attention_of(t)
    return loss_of(dtype, tf.reduce_mean(difference**2, axis=1))


def factor(teacher: TensorLike, student: TensorLike) -> LossOutput:
    """Returns the distance of factors (FT, Kim, Park and Kwak 2018).

        loss = mean |a(s) - a(t)|,    a as in `attention`

    That is what the code of the comparison computes of factors; the paper normalises
    the factors themselves.

    Args:
        teacher: `[B, H, W, C]`, a paraphraser's factor of the teacher's features; the
            larger map is averaged to the size of the smaller.
        student: `[B, H', W', C']`, a translator's factor of the student's.

    Returns:
        `loss` `[B]`.

    Raises:
        ValueError: If these are no maps of one batch.
        TypeError: If features are not floating point.
    """
    dtype, t, s = maps_of_one_size("factor", teacher, student)
    difference = _attention_of(s) - _attention_of(t)
    return loss_of(dtype, tf.reduce_mean(tf.abs(difference), axis=1))


def neuron_selectivity(teacher: TensorLike, student: TensorLike) -> LossOutput:
    """Returns the discrepancy of activation patterns (NST, Huang and Wang 2017).

        loss = mean k(t, t) + mean k(s, s) - 2 mean k(s, t),    k(a, b) = (a . b)^2

    over the channels' maps, flattened and of length 1: the squared maximum mean
    discrepancy with a polynomial kernel.

    Args:
        teacher: `[B, H, W, C]`; the larger map is averaged to the size of the smaller.
        student: `[B, H', W', C']`.

    Returns:
        `loss` `[B]`, at least 0 but for rounding.

    Raises:
        ValueError: If these are no maps of one batch.
        TypeError: If features are not floating point.
    """
    dtype, t, s = maps_of_one_size("neuron_selectivity", teacher, student)
    t, s = unit(as_pixels(t), axis=1), unit(as_pixels(s), axis=1)

    def kernel(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
        return tf.reduce_mean(tf.matmul(a, b, transpose_a=True) ** 2, axis=[1, 2])

    return loss_of(dtype, kernel(t, t) + kernel(s, s) - 2 * kernel(s, t))


def _attention_of(maps: tf.Tensor) -> tf.Tensor:
    return unit(as_rows(tf.reduce_mean(maps**2, axis=3)), axis=1)
