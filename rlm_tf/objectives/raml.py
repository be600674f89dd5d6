"""Reward-augmented maximum likelihood with sentences of a text as proposals.

Norouzi et al. (2016) maximise the likelihood of outputs y drawn in proportion to
e^(r(y) / beta). Cao and Xu (2019) draw y among the sentences that follow instead, and
weigh each by how much likelier it should have been drawn.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_floating, check_option, check_range, check_shapes
from rlm_tf.numerics import at_least_single, cast_like
from rlm_tf.typing import LossOutput, TensorLike

Tail = Literal["renormalised", "infinite", "clipped"]
Scale = Literal["sentence", "sum", "batch"]
TAILS: tuple[Tail, ...] = ("renormalised", "infinite", "clipped")
SCALES: tuple[Scale, ...] = ("sentence", "sum", "batch")


class ImportanceWeights(NamedTuple):
    """Weights of samples; they carry no gradient.

    Attributes:
        weights: `[B]`, sum to 1; all 0 where no sample can be drawn.
        effective_sample_size: Scalar, `1 / sum w^2`, in [1, B]; 0 where none can.
    """

    weights: tf.Tensor
    effective_sample_size: tf.Tensor


def geometric_log_probs(
    offsets: TensorLike,
    most: TensorLike | None = None,
    *,
    rate: float = 0.3,
    tail: Tail = "renormalised",
) -> tf.Tensor:
    """Returns ln G(offset), Eq. (15) of Cao and Xu (2019), in a text that ends.

        infinite      g ln(1 - rate) + ln rate
        renormalised  the same, minus ln(1 - (1 - rate)^(most + 1))
        clipped       the same as `infinite` for g < most, most ln(1 - rate) for
                      g = most: draws beyond the last sentence become the last

    Args:
        offsets: g = k - m, `[B]`, whole numbers; 0 is the true next sentence.
        most: `[B]`, the largest offset that exists; None: no end.
        rate: Probability of offset 0, in (0, 1].
        tail: What becomes of the probability of offsets that do not exist.

    Returns:
        `[B]`, nats, in the dtype of `offsets`, float64 for integers; minus infinity for
        offsets that cannot be drawn.

    Raises:
        ValueError: If shapes do not fit, `rate` is out of range or `tail` unknown.
    """
    name = "geometric_log_probs"
    check_option(name, "tail", tail, TAILS)
    if not 0 < rate <= 1:
        raise ValueError(f"{name}: `rate` must lie in (0, 1], found {rate}.")
    offsets = tf.convert_to_tensor(offsets)
    if not offsets.dtype.is_floating:
        offsets = tf.cast(offsets, tf.float64)
    keep = cast_like(np.log1p(-rate) if rate < 1 else -np.inf, offsets)
    log_probs = _multiples(offsets, keep) + cast_like(np.log(rate), offsets)
    possible = offsets >= 0
    if most is not None and tail != "infinite":
        most = cast_like(most, offsets)
        check_shapes(name, offsets=(offsets, "B"), most=(most, "B"))
        possible &= offsets <= most
        if tail == "renormalised":
            log_probs -= tf.math.log(-tf.math.expm1(_multiples(most + 1, keep)))
        else:
            log_probs = tf.where(offsets == most, _multiples(most, keep), log_probs)
    return tf.where(possible, log_probs, -np.inf)


def importance_weights(
    rewards: TensorLike, log_proposals: TensorLike, *, temperature: float = 1.0
) -> ImportanceWeights:
    """Returns self-normalised weights, w = softmax(r / beta - ln G).

    Args:
        rewards: r, `[B]`.
        log_proposals: ln G of each sample, `[B]`, up to a constant; -inf for one that
            cannot be drawn, whose weight is 0.
        temperature: beta > 0.

    Returns:
        The weights `[B]`, and how many samples of equal weight they are worth.

    Raises:
        ValueError: If shapes do not fit or `temperature` is not positive.
        TypeError: If `rewards` is not floating point.
    """
    name = "importance_weights"
    rewards = tf.convert_to_tensor(rewards)
    check_floating(name, rewards=rewards)
    dtype, rewards = rewards.dtype, at_least_single(rewards)
    log_proposals = cast_like(log_proposals, rewards)
    check_shapes(name, rewards=(rewards, "B"), log_proposals=(log_proposals, "B"))
    # Of a low temperature the quotient of a large reward would be infinite.
    drawn = tf.where(tf.equal(log_proposals, -np.inf), rewards.dtype.min, rewards)
    log_weights = log_importance_weights(
        rewards - tf.reduce_max(drawn), log_proposals, temperature=temperature
    )
    weights = tf.nn.softmax(log_weights)
    # Of none that can be drawn there is no weight at all.
    weights *= tf.cast(log_weights > log_weights.dtype.min, weights.dtype)
    size = tf.math.divide_no_nan(
        tf.ones([], weights.dtype), tf.reduce_sum(tf.square(weights))
    )
    return ImportanceWeights(tf.cast(weights, dtype), tf.cast(size, dtype))


def log_importance_weights(
    rewards: TensorLike, log_proposals: TensorLike, *, temperature: float = 1.0
) -> tf.Tensor:
    """Returns r / beta - ln G, `[B]`, without gradient; see `importance_weights`.

    In single precision for half precision, which has no number above 65,504; the least
    number there is for samples that cannot be drawn.
    """
    name = "importance_weights"
    rewards = tf.convert_to_tensor(rewards)
    check_floating(name, rewards=rewards)
    least = float(np.finfo(np.float32).tiny)
    check_range(name, least, np.inf, temperature=temperature)
    log_proposals = cast_like(log_proposals, rewards)
    check_shapes(name, rewards=(rewards, "B"), log_proposals=(log_proposals, "B"))
    scaled = at_least_single(rewards) / temperature
    log_proposals = cast_like(log_proposals, scaled)
    return tf.stop_gradient(
        tf.where(
            tf.equal(log_proposals, -np.inf), scaled.dtype.min, scaled - log_proposals
        )
    )


def iw_raml(
    nll: TensorLike,
    lengths: TensorLike,
    rewards: TensorLike,
    log_proposals: TensorLike,
    *,
    temperature: float = 1.0,
    scale: Scale = "sentence",
) -> LossOutput:
    """Returns the importance-weighted loss of Eq. (16) of Cao and Xu (2019).

        sentence  loss_i = w_i NLL_i / L_i    (default: nats a token)
        sum       loss_i = w_i NLL_i          (Eq. 16)
        batch     loss_i = w_i NLL_i / sum_j L_j  (the authors' code)

    Args:
        nll: NLL_i = -ln Q(Y_i|X_i), `[B]`, nats; gets the whole gradient. It may be
            infinite where the weight is 0.
        lengths: L_i, tokens of Y_i, `[B]`; 0 counts as 1.
        rewards: r_i, `[B]`.
        log_proposals: ln G(Y_i), `[B]`.
        temperature: beta > 0.
        scale: What a sentence's loss is divided by.

    Returns:
        `loss` `[B]`, whose sum is the term; `extra` is an `ImportanceWeights`.

    Raises:
        ValueError: If shapes do not fit, `temperature` is not positive or `scale` is
            unknown.
        TypeError: If `nll` or `rewards` is not floating point.
    """
    name = "iw_raml"
    nll = tf.convert_to_tensor(nll)
    check_floating(name, nll=nll)
    losses = scaled_nll(name, nll, lengths, scale)
    extra = importance_weights(rewards, log_proposals, temperature=temperature)
    check_shapes(name, nll=(nll, "B"), rewards=(extra.weights, "B"))
    # A sentence of weight 0 may be impossible.
    weights = tf.cast(extra.weights, nll.dtype)
    return LossOutput(tf.math.multiply_no_nan(losses, weights), extra)


def scaled_nll(
    function: str, nll: tf.Tensor, lengths: TensorLike, scale: str
) -> tf.Tensor:
    """Returns NLL_i over what `scale` says, `[B]`; see `iw_raml`."""
    check_option(function, "scale", scale, SCALES)
    lengths = tf.maximum(cast_like(lengths, nll), 1)
    check_shapes(function, nll=(nll, "B"), lengths=(lengths, "B"))
    if scale == "sentence":
        return nll / lengths
    return nll / tf.reduce_sum(lengths) if scale == "batch" else nll


def _multiples(numbers: tf.Tensor, log_keep: tf.Tensor) -> tf.Tensor:
    """Returns numbers * log_keep with 0 * -inf = 0."""
    return tf.where(numbers == 0, tf.zeros_like(numbers), numbers * log_keep)
