"""Induced model matching: the objective of Muneeb and Ohannessian, arXiv 2402.12513.

A full model `Q` predicts from a full context: a short context plus an extended one. Its
*induced model* `Q_hat` predicts from the short context alone, as the mean of `Q` over
extended contexts that occur with it. IMM asks the induced model to match a restricted
model `P_hat` that was built for the short context. All functions work per position, in
log space, and keep the dtype.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from rlm_tf.checks import check_floating, check_shapes
from rlm_tf.numerics import cast_like, log_mean_exp, multiply_no_nan_log
from rlm_tf.typing import LossOutput, TensorLike


class InducedExtra(NamedTuple):
    """What induced losses also compute.

    Attributes:
        induced_log_probs: `[..., V]`, log-probabilities of the induced model.
    """

    induced_log_probs: tf.Tensor


def induced_log_probs(
    sample_log_probs: TensorLike, log_weights: TensorLike | None = None
) -> tf.Tensor:
    """Returns log-probabilities of the induced model, Eqs. (2), (9) and (21).

    `log Q_hat(y | sh) = log sum_i w_i Q(y | sh, x_i)`, `w` = softmax of `log_weights`
    over the K samples; uniform when None, which gives the mean over k sampled extended
    contexts. Kernel weights give Eq. (2); a belief over hidden states gives the
    induced policy of a reinforcement learner.

    Args:
        sample_log_probs: `[K, ..., V]`, log-probabilities given each extended context.
        log_weights: `[K]` or `[K, ...]`, unnormalised; normalised inside. Not all of a
            position may be minus infinity: nothing is no distribution.

    Returns:
        `[..., V]`, nats.

    Raises:
        ValueError: If shapes do not fit.
    """
    samples = _stack_of_samples("induced_log_probs", sample_log_probs)
    if log_weights is None:
        return log_mean_exp(samples, axis=0)
    weights = cast_like(log_weights, samples)
    first = samples[..., 0]
    if weights.shape.rank == 1:
        # An element of each sample would do, but a batch may be empty.
        numbers = tf.zeros(samples.shape[:1].as_list()[0] or tf.shape(samples)[0])
        check_shapes(
            "induced_log_probs",
            sample_log_probs=(numbers, "K"),
            log_weights=(weights, "K"),
        )
        ones = [1] * (samples.shape.rank - 1)
        weights = tf.reshape(weights, [-1, *ones])
    else:
        check_shapes(
            "induced_log_probs",
            sample_log_probs=(first, "..."),
            log_weights=(weights, "..."),
        )
        weights = weights[..., tf.newaxis]
    return log_mean_exp(samples, axis=0, log_weights=weights)


def induced_cross_entropy(
    target_probs: TensorLike,
    sample_log_probs: TensorLike,
    log_weights: TensorLike | None = None,
) -> LossOutput:
    """Returns the separable IMM loss of each position, Eqs. (12) and (15).

    `IMM_t = - sum_y P_hat(y | sh) log( sum_i w_i Q(y | sh, x_i) )`. The minus sign,
    which Eq. (12) drops, is in Eq. (15). Differentiating it backpropagates through all
    K samples at once; `crosstalk_surrogate` gives the same gradient one at a time.

    Args:
        target_probs: `[..., V]`, the restricted model; gets no gradient. Zeros are
            allowed and contribute nothing.
        sample_log_probs: `[K, ..., V]`.
        log_weights: `[K]` or `[K, ...]`, or None for uniform weights.

    Returns:
        `loss` `[...]` in nats, not below the entropy of `target_probs`.

    Raises:
        ValueError: If shapes do not fit.
    """
    sample_log_probs = tf.convert_to_tensor(sample_log_probs)
    target_probs = cast_like(target_probs, sample_log_probs)
    _check_samples("induced_cross_entropy", target_probs, sample_log_probs)
    target_probs = tf.stop_gradient(target_probs)
    induced = induced_log_probs(sample_log_probs, log_weights)
    loss = -tf.reduce_sum(multiply_no_nan_log(target_probs, induced), axis=-1)
    return LossOutput(loss, InducedExtra(induced))


def induced_kl_divergence(
    target_probs: TensorLike,
    sample_log_probs: TensorLike,
    log_weights: TensorLike | None = None,
) -> LossOutput:
    """Returns `KL(P_hat || Q_hat)` of each position, the summand of Eq. (8).

    Equals `induced_cross_entropy` minus the entropy of the target, so both have the
    same gradient. Arguments and errors as there; `loss` `[...]`, nats, at least 0.
    """
    cross_entropy, extra = induced_cross_entropy(
        target_probs, sample_log_probs, log_weights
    )
    target_probs = tf.stop_gradient(cast_like(target_probs, cross_entropy))
    log_target = tf.math.log(tf.where(target_probs > 0, target_probs, 1))
    entropy = -tf.reduce_sum(target_probs * log_target, axis=-1)
    return LossOutput(cross_entropy - entropy, extra)


def crosstalk_weights(sample_log_probs: TensorLike) -> tf.Tensor:
    """Returns `C_i(y) = Q_i(y) / sum_j Q_j(y)`, appendix C.2, without gradient.

    All samples at once; a training step, which has one at a time in memory, computes
    them from the sum over samples (`rlm_tf/models/imm/crosstalk.py`).

    Args:
        sample_log_probs: `[K, ..., V]`.

    Returns:
        `[K, ..., V]`; sums to 1 over K. Where every `Q_j(y)` is 0 it is `1/K`.

    Raises:
        ValueError: If there is no axis of samples, or none in it.
    """
    sample_log_probs = _stack_of_samples("crosstalk_weights", sample_log_probs)
    lowest = sample_log_probs.dtype.min
    return tf.stop_gradient(tf.nn.softmax(tf.maximum(sample_log_probs, lowest), axis=0))


def crosstalk_surrogate(
    target_probs: TensorLike, log_probs: TensorLike, weights: TensorLike
) -> tf.Tensor:
    """Returns the loss whose gradients, summed over samples, are those of IMM.

    `- sum_y P_hat(y) C_i(y) log Q_i(y)`, the summand of the last line of Eq. (23). Its
    gradient is one sample's share of the gradient of `induced_cross_entropy`; its
    value is not the IMM loss.

    Args:
        target_probs: `[..., V]`.
        log_probs: `[..., V]` of one sample, or `[K, ..., V]` of several.
        weights: Crosstalk weights in the shape of `log_probs`; get no gradient.

    Returns:
        `[...]` or `[K, ...]`.

    Raises:
        ValueError: If shapes do not fit.
    """
    log_probs = tf.convert_to_tensor(log_probs)
    target_probs = tf.stop_gradient(cast_like(target_probs, log_probs))
    weights = tf.stop_gradient(cast_like(weights, log_probs))
    function, one_sample = "crosstalk_surrogate", log_probs
    check_shapes(function, log_probs=(log_probs, "... V"), weights=(weights, "... V"))
    if log_probs.shape.rank != target_probs.shape.rank:
        one_sample = _stack_of_samples(function, log_probs, "log_probs")[0]
    check_shapes(
        function, target_probs=(target_probs, "... V"), log_probs=(one_sample, "... V")
    )
    return -tf.reduce_sum(
        multiply_no_nan_log(target_probs * weights, log_probs), axis=-1
    )


def noising_cross_entropy(
    target_probs: TensorLike, log_probs: TensorLike
) -> LossOutput:
    """Returns the loss that noising minimises, the second summand of Eq. (16).

    `- sum_y P_hat(y | sh) log Q(y | sh, ex)`: the target is pitted against the full
    model itself and not against its induced model. It is `induced_cross_entropy` with
    K = 1, an upper bound of it (Jensen, Eqs. (17) and (18)), and it is inconsistent:
    its minimiser together with the main loss is not the true model (Proposition 5.1).

    Args:
        target_probs: `[..., V]`; gets no gradient.
        log_probs: `[..., V]`.

    Returns:
        `loss` `[...]` in nats; `extra` holds `log_probs`.
    """
    log_probs = tf.convert_to_tensor(log_probs)
    return induced_cross_entropy(target_probs, log_probs[tf.newaxis])


def _check_samples(
    function: str, target_probs: tf.Tensor, sample_log_probs: tf.Tensor
) -> None:
    if sample_log_probs.shape.rank == target_probs.shape.rank:
        raise ValueError(
            f"{function}: `sample_log_probs` must have one axis more than "
            f"`target_probs` (K first); found shapes {sample_log_probs.shape} and "
            f"{target_probs.shape}."
        )
    samples = _stack_of_samples(function, sample_log_probs)
    check_shapes(
        function,
        target_probs=(target_probs, "... V"),
        sample_log_probs=(samples[0], "... V"),
    )


def _stack_of_samples(
    function: str, log_probs: TensorLike, name: str = "sample_log_probs"
) -> tf.Tensor:
    """Returns log-probabilities `[K, ..., V]` as a tensor, K >= 1."""
    samples = tf.convert_to_tensor(log_probs)
    check_floating(function, **{name: samples})
    if samples.shape.rank is not None and samples.shape.rank < 2:
        raise ValueError(
            f"{function}: `{name}` must have axes [K ... V], found shape "
            f"{samples.shape}."
        )
    if samples.shape.rank is not None and samples.shape[0] == 0:
        raise ValueError(f"{function}: `{name}` holds no sample (K = 0).")
    return samples
