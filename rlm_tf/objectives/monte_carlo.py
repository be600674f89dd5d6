"""Monte Carlo objectives whose latents carry information (Melis 2023, chapter 5).

All are functions of the log-probabilities of K samples `z_i ~ q(z|x)`, samples first,
and estimate `ln p(x) + lambda KL(p(z|x) || p(z))` or a part of it. What autodiff makes
of them is the gradient at fixed samples; how the parameters of `q` get theirs is a
matter of its own (`rlm_tf.objectives.gradient_estimators`).

Half precision has too few digits for differences of log-probabilities: convert before.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from rlm_tf.objectives import monte_carlo_terms as terms
from rlm_tf.objectives.monte_carlo_samples import (
    Samples,
    checked_options,
    checked_samples,
    with_counts,
)
from rlm_tf.objectives.monte_carlo_terms import Grouping, Objective
from rlm_tf.typing import LossOutput, TensorLike


class MonteCarloExtra(NamedTuple):
    """By-products of Monte Carlo objectives, from all K samples.

    Attributes:
        log_evidence: `[...]`, S, a lower bound on `ln p(x)` in expectation, nats.
        kl_divergence: `[...]`, U - S, the estimate of `KL(p(z|x) || p(z))`, nats.
        representational_kl: `[...]`, mean of `ln q(z|x) - ln p(z)`, the estimate of
            `KL(q(z|x) || p(z))`, nats.
        weights: `[K, ...]`, self-normalised importance weights; zero where no sample
            can have said x.
    """

    log_evidence: tf.Tensor
    kl_divergence: tf.Tensor
    representational_kl: tf.Tensor
    weights: tf.Tensor


def iwae(
    log_p_x_given_z: TensorLike, log_p_z: TensorLike, log_q_z: TensorLike
) -> LossOutput:
    """Minus the importance weighted bound of Burda et al. (2015).

        S^K = ln (1/K) sum_i p(x|z_i) p(z_i) / q(z_i|x)

    In expectation it is a lower bound on `ln p(x)` that does not fall with K; with one
    sample, the sampled ELBO.

    Args:
        log_p_x_given_z: `[K, ...]`, nats, floating point.
        log_p_z: `[K, ...]`.
        log_q_z: `[K, ...]`.

    Returns:
        `loss` `[...]`, nats, dtype of `log_p_x_given_z`, and a `MonteCarloExtra`.

    Raises:
        ValueError: If shapes do not fit or there is no sample.
        TypeError: If `log_p_x_given_z` is not floating point.
    """
    return _objective("iwae", "iwae", log_p_x_given_z, log_p_z, log_q_z)


def alpha_iwae(
    log_p_x_given_z: TensorLike,
    log_p_z: TensorLike,
    log_q_z: TensorLike,
    *,
    alpha: float | tf.Tensor,
) -> LossOutput:
    """Minus the bound on `ln p^alpha(x) = ln E_{p(z)} p(x|z)^alpha`, Eq. (5.17).

        S_alpha^K = ln (1/K) sum_i p(x|z_i)^alpha p(z_i) / q(z_i|x)

    Exact with the proposal `q` proportional to `p(x|z)^alpha p(z)`.

    Args:
        log_p_x_given_z: `[K, ...]`, nats, floating point.
        log_p_z: `[K, ...]`.
        log_q_z: `[K, ...]`.
        alpha: Positive; a scalar, or `[...]`.

    Returns:
        As `iwae`.

    Raises:
        ValueError: If shapes do not fit, there is no sample or `alpha` is not positive.
        TypeError: If `log_p_x_given_z` is not floating point.
    """
    return _objective(
        "alpha_iwae", "alpha_iwae", log_p_x_given_z, log_p_z, log_q_z, alpha=alpha
    )


def self_normalised_log_likelihood(
    log_p_x_given_z: TensorLike, log_p_z: TensorLike, log_q_z: TensorLike
) -> LossOutput:
    """Minus the estimate of `E_{p(z|x)} ln p(x|z)`, Eq. (5.9).

        U^K = sum_i w_i ln p(x|z_i),    w = softmax(ln p(x|z) + ln p(z) - ln q(z|x))

    Args:
        log_p_x_given_z: `[K, ...]`, nats, floating point.
        log_p_z: `[K, ...]`.
        log_q_z: `[K, ...]`.

    Returns:
        As `iwae`.

    Raises:
        ValueError: If shapes do not fit or there is no sample.
        TypeError: If `log_p_x_given_z` is not floating point.
    """
    return _objective(
        "self_normalised_log_likelihood",
        "u_hat",
        log_p_x_given_z,
        log_p_z,
        log_q_z,
    )


def kl_objective(
    log_p_x_given_z: TensorLike,
    log_p_z: TensorLike,
    log_q_z: TensorLike,
    *,
    lambda_: float | tf.Tensor,
    num_samples: tuple[int, int] | None = None,
    grouping: Grouping = "difference",
) -> LossOutput:
    """Minus the KL objective, Eqs. (5.11) and (5.12).

        O_KL = (1 - lambda) S^K + lambda U^K = S^K + lambda (U^K - S^K)

    `U^K - S^K` is consistent for `KL(p(z|x) || p(z))`, and may be biased either way:
    Proposition 9 (ii) is wrong for `q = p(z)` and one sample. With one sample this is
    the beta-VAE of `beta = 1 - lambda`.

    Args:
        log_p_x_given_z: `[K, ...]`, nats, floating point.
        log_p_z: `[K, ...]`.
        log_q_z: `[K, ...]`.
        lambda_: Weight of the mutual information, a scalar or `[...]`; negative ones
            push it down.
        num_samples: (N, M): the evidence is estimated from the first N samples, the
            divergence from the first M; None: both from all.
        grouping: How counts that differ enter. `difference`:
            `S^N + lambda (U^M - S^M)`; `terms`: `(1 - lambda) S^N + lambda U^M`. The
            text does not say which of them its curves of 16/1 and 1/16 samples have.
            With N > M and a positive lambda `difference` has no maximum for normal
            latents: the wider q is, the more M samples overestimate the divergence,
            and N samples the less underestimate the evidence. Use `terms` there.

    Returns:
        As `iwae`.

    Raises:
        ValueError: If shapes or counts do not fit.
        TypeError: If `log_p_x_given_z` is not floating point.
    """
    return _objective(
        "kl_objective",
        "kl",
        log_p_x_given_z,
        log_p_z,
        log_q_z,
        lambda_=lambda_,
        num_samples=num_samples,
        grouping=grouping,
    )


def renyi_objective(
    log_p_x_given_z: TensorLike,
    log_p_z: TensorLike,
    log_q_z: TensorLike,
    *,
    alpha: float | tf.Tensor,
    lambda_: float | tf.Tensor,
    num_samples: tuple[int, int] | None = None,
    grouping: Grouping = "difference",
) -> LossOutput:
    """Minus the Rényi objective, Eqs. (5.15) and (5.16).

        O_R = S^K + lambda / (alpha - 1) (S_alpha^K - alpha S^K)

    The second part estimates `lambda D_alpha(p(z|x) || p(z))`. At `alpha = 1` this is
    the KL objective, in the limit and here; near it no digits are lost.

    Args:
        log_p_x_given_z: `[K, ...]`, nats, floating point.
        log_p_z: `[K, ...]`.
        log_q_z: `[K, ...]`.
        alpha: Positive; a scalar, or `[...]`.
        lambda_: Weight of the mutual information, a scalar or `[...]`; negative ones
            push it down.
        num_samples: As in `kl_objective`.
        grouping: As in `kl_objective`; `terms`: `lambda / (alpha - 1) S_alpha^M -
            (lambda alpha / (alpha - 1) - 1) S^N`.

    Returns:
        As `iwae`.

    Raises:
        ValueError: If shapes or counts do not fit or `alpha` is not positive.
        TypeError: If `log_p_x_given_z` is not floating point.
    """
    return _objective(
        "renyi_objective",
        "renyi",
        log_p_x_given_z,
        log_p_z,
        log_q_z,
        alpha=alpha,
        lambda_=lambda_,
        num_samples=num_samples,
        grouping=grouping,
    )


def power_objective(
    log_p_x_given_z: TensorLike,
    log_p_z: TensorLike,
    log_q_z: TensorLike,
    *,
    alpha: float | tf.Tensor,
) -> LossOutput:
    """Minus the power objective, Eq. (5.18): the Rényi one of lambda = 1 - 1/alpha.

        O_P = S_alpha^K / alpha

    For `alpha > 1` and discrete x, `ln p^alpha(x)` is a lower bound on `ln p(x)`, tight
    where the latents determine x (Proposition 10).

    Args:
        log_p_x_given_z: `[K, ...]`, nats, floating point.
        log_p_z: `[K, ...]`.
        log_q_z: `[K, ...]`.
        alpha: Positive; a scalar, or `[...]`.

    Returns:
        As `iwae`.

    Raises:
        ValueError: If shapes do not fit, there is no sample or `alpha` is not positive.
        TypeError: If `log_p_x_given_z` is not floating point.
    """
    return _objective(
        "power_objective", "power", log_p_x_given_z, log_p_z, log_q_z, alpha=alpha
    )


def _objective(
    function: str,
    objective: Objective,
    log_p_x_given_z: TensorLike,
    log_p_z: TensorLike,
    log_q_z: TensorLike,
    *,
    alpha: Any = 1.0,
    lambda_: Any = 0.0,
    num_samples: tuple[int, int] | None = None,
    grouping: Grouping = "difference",
) -> LossOutput:
    samples = checked_samples(function, log_p_x_given_z, log_p_z, log_q_z)
    alpha, lambda_ = checked_options(function, alpha, lambda_, samples.log_likelihood)
    samples = with_counts(function, samples, num_samples)
    parts = terms.decompose(
        function,
        objective,
        alpha=alpha,
        lambda_=lambda_,
        num_samples=num_samples,
        grouping=grouping,
    )
    return LossOutput(-terms.objective_value(parts, samples), extra_of(samples))


def extra_of(samples: Samples) -> MonteCarloExtra:
    """Returns what objectives return beside their loss."""
    weights = terms.normalised_weights(samples)
    return MonteCarloExtra(
        terms.evidence(samples),
        terms.divergence(samples, 1.0),
        tf.reduce_mean(-samples.log_ratio, axis=0),
        weights,
    )
