"""Bounds and estimates of mutual information from scores of pairs.

A critic T scores pairs (x, y). *Joint* scores are of pairs that occur together,
*marginal* scores of an x and a y that were drawn apart. Losses are minus what is to be
maximised, in nats, and keep the dtype; a bound that is no mean of examples is a scalar.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_floating, check_range, check_shapes
from rlm_tf.numerics import at_least_single, cast_like, log_mean_exp
from rlm_tf.typing import LossOutput, TensorLike


class ProxyExtra(NamedTuple):
    """By-products of `jsd_proxy`.

    Attributes:
        pair_accuracy: `[B]`, the share of marginal scores below the joint one.
    """

    pair_accuracy: tf.Tensor


class BoundExtra(NamedTuple):
    """The two halves of a bound; no gradient is stopped.

    Attributes:
        joint: The mean of the joint scores, or, by pair, the scores themselves.
        marginal: What the bound subtracts.
    """

    joint: tf.Tensor
    marginal: tf.Tensor


class ConditionalBounds(NamedTuple):
    """Bounds of a model's own mutual information, from each y.

    Attributes:
        lower: `[N]`, at most ln N; its mean is below the information, in expectation.
        upper: `[N]`; its mean is above. Infinite for N = 1.
    """

    lower: tf.Tensor
    upper: tf.Tensor


class PolicySurrogateExtra(NamedTuple):
    """By-products of `policy_surrogate`; they carry no gradient.

    Attributes:
        joint_rewards: `[B]`, R+ = -SP(-D), at most 0.
        marginal_rewards: `[B]`, R- = SP(D), at least 0.
    """

    joint_rewards: tf.Tensor
    marginal_rewards: tf.Tensor


def jsd_proxy(joint_scores: TensorLike, marginal_scores: TensorLike) -> LossOutput:
    """Returns minus Eq. (6) of Cao and Xu (2019), pair by pair.

        loss = SP(-D+) + mean_k SP(D-_k),    SP(z) = ln(1 + e^z)

    It is 2 ln 2 at D = 0 and least at D = the pointwise mutual information, where its
    mean is 2 ln 2 minus twice the Jensen-Shannon divergence between the pairs' joint
    and product distributions. The bound -loss is never above 0: it says nothing about
    how large the mutual information is.

    Args:
        joint_scores: D+, `[B]`.
        marginal_scores: D-, `[B]` or `[B, K]`.

    Returns:
        `loss` `[B]`.

    Raises:
        ValueError: If shapes do not fit.
        TypeError: If the scores are not floating point.
    """
    name = "jsd_proxy"
    dtype, joint, marginal = _scores(name, joint_scores, marginal_scores)
    if marginal.shape.rank == 1:
        marginal = marginal[:, tf.newaxis]
    check_shapes(name, joint_scores=(joint, "B"), marginal_scores=(marginal, "B K"))
    loss = tf.nn.softplus(-joint) + tf.reduce_mean(tf.nn.softplus(marginal), axis=1)
    above = tf.cast(joint[:, tf.newaxis] > marginal, joint.dtype)
    return _rounded(dtype, loss, ProxyExtra(tf.reduce_mean(above, axis=1)))


def mine_bound(joint_scores: TensorLike, marginal_scores: TensorLike) -> LossOutput:
    """Returns minus the bound of Donsker and Varadhan, Eq. (4) of Cao and Xu (2019).

        loss = -(mean T+ - ln mean e^(T-))

    It is blind to a constant that is added to T. The logarithm of a sample mean is too
    low on average, so the bound is too high where marginal scores are few.

    Args:
        joint_scores: T+, `[N]`.
        marginal_scores: T-, any shape; minus infinity stands for e^T = 0.

    Returns:
        `loss`, a scalar.

    Raises:
        ValueError: If `joint_scores` is no vector, or there are no scores.
        TypeError: If the scores are not floating point.
    """
    name = "mine_bound"
    dtype, joint, marginal = _scores(name, joint_scores, marginal_scores)
    return _logarithmic_bound(name, dtype, joint, tf.reshape(marginal, [-1]))


def nwj_bound(
    joint_scores: TensorLike, marginal_scores: TensorLike, *, log_baseline: float = 1.0
) -> LossOutput:
    """Returns minus the bound of Nguyen, Wainwright and Jordan, with any constant a.

        loss = -(mean T+ - mean e^(T- - a) - a + 1)

    Each a gives a lower bound, which is tight at T = PMI + a; the best is ln mean e^T.
    With a from other data the sample value is unbiased, which that of `mine_bound` is
    not. A critic trained by `jsd_proxy` tends to the PMI: a = 0, not 1, is near its
    best.

    Args:
        joint_scores: T+, `[N]`.
        marginal_scores: T-, any shape. Where e^(T - a) overflows, the loss and its
            gradient are infinite.
        log_baseline: a.

    Returns:
        `loss`, a scalar.

    Raises:
        ValueError: If `joint_scores` is no vector, there are no scores, or
            `log_baseline` is not finite.
        TypeError: If the scores are not floating point.
    """
    name = "nwj_bound"
    dtype, joint, marginal = _scores(name, joint_scores, marginal_scores)
    check_range(name, -math.inf, math.inf, log_baseline=log_baseline)
    _check_vectors(name, joint, marginal)
    constant = cast_like(log_baseline, joint)
    excess = tf.reduce_mean(tf.exp(marginal - constant)) + constant - 1
    mean = tf.reduce_mean(joint)
    return _rounded(dtype, excess - mean, BoundExtra(mean, excess))


def smile_estimate(
    joint_scores: TensorLike, marginal_scores: TensorLike, *, clip: float = 5.0
) -> LossOutput:
    """Returns minus the estimate of Song and Ermon (2020).

        loss = -(mean T+ - ln mean e^(max(min(T-, c), -c)))

    `mine_bound` with scores clipped under the logarithm alone, which takes variance
    and the bound: it may be above the mutual information.

    Args:
        joint_scores: T+, `[N]`.
        marginal_scores: T-, any shape.
        clip: c > 0.

    Returns:
        `loss`, a scalar.

    Raises:
        ValueError: If `joint_scores` is no vector, there are no scores, or `clip` is
            not positive.
        TypeError: If the scores are not floating point.
    """
    name = "smile_estimate"
    dtype, joint, marginal = _scores(name, joint_scores, marginal_scores)
    check_range(name, float(np.finfo(np.float32).tiny), math.inf, clip=clip)
    most = cast_like(clip, joint)
    clipped = tf.clip_by_value(tf.reshape(marginal, [-1]), -most, most)
    return _logarithmic_bound(name, dtype, joint, clipped)


def info_nce(scores: TensorLike) -> LossOutput:
    """Returns minus the bound of van den Oord et al. (2018), from each x.

        loss_i = -(T_ii - ln mean_j e^(T_ij))

    Args:
        scores: `[N, N]`, row x, column y; pairs that occur together on the diagonal.

    Returns:
        `loss` `[N]`, at least -ln N: no more than ln N nats can be seen.

    Raises:
        ValueError: If `scores` is not square.
        TypeError: If it is not floating point.
    """
    dtype, scores = _square("info_nce", scores=scores)
    joint = tf.linalg.diag_part(scores)
    shift = _finite(joint)
    loss = log_mean_exp(scores - shift[:, tf.newaxis], axis=1) - (joint - shift)
    extra = BoundExtra(joint, log_mean_exp(scores, axis=1))
    return _rounded(dtype, loss, extra)


def conditional_bounds(log_probs: TensorLike) -> ConditionalBounds:
    """Returns bounds of I(X; Y) under a model whose conditional probability is known.

        lower_j = ln Q(y_j|x_j) - ln mean_i Q(y_j|x_i), i = j among the N contexts
        upper_j = the same without i = j

    No critic is needed (Poole et al., 2019).

    Args:
        log_probs: `[N, N]`, entry [i, j] = ln Q(y_j|x_i), y_j drawn after x_j.

    Returns:
        The bounds, `[N]` each.

    Raises:
        ValueError: If `log_probs` is not square.
        TypeError: If it is not floating point.
    """
    dtype, log_probs = _square("conditional_bounds", log_probs=log_probs)
    log_probs -= _finite(tf.linalg.diag_part(log_probs))
    own = tf.linalg.diag_part(log_probs)
    number = tf.cast(tf.shape(log_probs)[0], log_probs.dtype)
    impossible = tf.fill(tf.shape(own), tf.constant(-math.inf, own.dtype))
    others = log_mean_exp(tf.linalg.set_diag(log_probs, impossible))
    # That mean counts the one left out. A single context has no others.
    others += tf.math.log(number / tf.maximum(number - 1, 1))
    lower, upper = own - log_mean_exp(log_probs), own - others
    return ConditionalBounds(tf.cast(lower, dtype), tf.cast(upper, dtype))


def policy_surrogate(
    joint_scores: TensorLike,
    joint_log_probs: TensorLike,
    marginal_scores: TensorLike,
    marginal_log_probs: TensorLike,
    *,
    joint_baseline: TensorLike | float = 0.0,
    marginal_baseline: TensorLike | float = 0.0,
) -> LossOutput:
    """Returns what raises a model's own Eq. (7) of Cao and Xu (2019) when lowered.

        loss = -[(R+ - b+) ln Q(x, y) - (R- - b-) (ln Q(x1) + ln Q(y2))]
        R+ = -SP(-D(x, y)),    R- = SP(D(x1, y2))

    for samples of the model: its gradient, in expectation, is minus that of Eq. (9),
    whatever the baselines, as long as they do not depend on the sample. (The authors'
    code has the other sign.) ln Q_Y(y2), the sum over all that may come before, can be
    replaced by ln Q(x2, y2) of the trajectory that y2 comes from: the expected score
    is the same (Fisher's identity), noisier.

    Args:
        joint_scores: D(x, y), `[B]`; no scores and no baselines get a gradient.
        joint_log_probs: ln Q(x, y), `[B]`; minus infinity makes an infinite loss where
            its reward is not the baseline: a model draws no such samples.
        marginal_scores: D(x1, y2), `[B]`.
        marginal_log_probs: ln Q(x1) + ln Q(y2), `[B]`, or the same of trajectories.
        joint_baseline: b+, a scalar or `[B]`.
        marginal_baseline: b-, a scalar or `[B]`.

    Returns:
        `loss` `[B]`; its value means nothing.

    Raises:
        ValueError: If shapes do not fit.
        TypeError: If scores or log-probabilities are not floating point.
    """
    name = "policy_surrogate"
    joint_scores = tf.convert_to_tensor(joint_scores)
    check_floating(name, joint_scores=joint_scores, marginal_scores=marginal_scores)
    marginal_scores = cast_like(marginal_scores, joint_scores)
    joint_log_probs = tf.convert_to_tensor(joint_log_probs)
    check_floating(
        name, joint_log_probs=joint_log_probs, marginal_log_probs=marginal_log_probs
    )
    marginal_log_probs = cast_like(marginal_log_probs, joint_log_probs)
    check_shapes(
        name,
        joint_scores=(joint_scores, "B"),
        joint_log_probs=(joint_log_probs, "B"),
        marginal_scores=(marginal_scores, "B"),
        marginal_log_probs=(marginal_log_probs, "B"),
    )
    rewards = PolicySurrogateExtra(
        tf.stop_gradient(-tf.nn.softplus(-joint_scores)),
        tf.stop_gradient(tf.nn.softplus(marginal_scores)),
    )
    joint, marginal = (
        _advantages(name, *pair, joint_log_probs)
        for pair in (
            (rewards.joint_rewards, "joint_baseline", joint_baseline),
            (rewards.marginal_rewards, "marginal_baseline", marginal_baseline),
        )
    )
    # What is impossible and not rewarded counts nothing.
    loss = tf.math.multiply_no_nan(marginal_log_probs, marginal)
    loss -= tf.math.multiply_no_nan(joint_log_probs, joint)
    return LossOutput(loss, rewards)


def _advantages(
    function: str,
    rewards: tf.Tensor,
    argument: str,
    baseline: TensorLike | float,
    log_probs: tf.Tensor,
) -> tf.Tensor:
    baseline = tf.stop_gradient(cast_like(baseline, rewards))
    if baseline.shape.rank != 0:
        check_shapes(function, rewards=(rewards, "B"), **{argument: (baseline, "B")})
    return tf.cast(rewards - baseline, log_probs.dtype)


def _logarithmic_bound(
    function: str, dtype: tf.DType, joint: tf.Tensor, marginal: tf.Tensor
) -> LossOutput:
    """Returns ln mean e^(T-) - mean T+, of which large scores keep the digits."""
    _check_vectors(function, joint, marginal)
    shift = _finite(tf.reduce_max(marginal))
    loss = log_mean_exp(marginal - shift) - tf.reduce_mean(joint - shift)
    extra = BoundExtra(tf.reduce_mean(joint), log_mean_exp(marginal))
    return _rounded(dtype, loss, extra)


def _check_vectors(function: str, joint: tf.Tensor, marginal: tf.Tensor) -> None:
    check_shapes(function, joint_scores=(joint, "N"))
    for argument, scores in {"joint": joint, "marginal": marginal}.items():
        if scores.shape.num_elements() == 0:
            raise ValueError(
                f"{function}: `{argument}_scores` must hold a score at least, found "
                f"shape {list(scores.shape)}."
            )


def _finite(scores: tf.Tensor) -> tf.Tensor:
    """Returns what may be subtracted from all scores of a bound, without gradient."""
    zeros = tf.zeros_like(scores)
    return tf.stop_gradient(tf.where(tf.math.is_finite(scores), scores, zeros))


def _scores(
    function: str, joint_scores: TensorLike, marginal_scores: TensorLike
) -> tuple[tf.DType, tf.Tensor, tf.Tensor]:
    """Returns the dtype of scores, and scores that sums of many do not overflow."""
    joint = tf.convert_to_tensor(joint_scores)
    check_floating(function, joint_scores=joint, marginal_scores=marginal_scores)
    single = at_least_single(joint)
    return joint.dtype, single, cast_like(marginal_scores, single)


def _square(function: str, **matrix: TensorLike) -> tuple[tf.DType, tf.Tensor]:
    ((argument, value),) = matrix.items()
    value = tf.convert_to_tensor(value)
    check_floating(function, **{argument: value})
    check_shapes(function, **{argument: (value, "N N")})
    return value.dtype, at_least_single(value)


def _rounded(
    dtype: tf.DType, loss: tf.Tensor, extra: ProxyExtra | BoundExtra
) -> LossOutput:
    """Returns numbers in the dtype of the scores."""
    cast = type(extra)(*(tf.cast(value, dtype) for value in extra))
    return LossOutput(tf.cast(loss, dtype), cast)
