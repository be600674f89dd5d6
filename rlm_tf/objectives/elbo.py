"""The evidence lower bound with an exact KL divergence, and objectives made of it."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from rlm_tf.checks import check_shapes
from rlm_tf.numerics import cast_like
from rlm_tf.objectives import monte_carlo_terms
from rlm_tf.objectives.monte_carlo_samples import (
    checked_log_likelihood,
    checked_options,
)
from rlm_tf.objectives.monte_carlo_terms import Objective
from rlm_tf.typing import LossOutput, TensorLike


class ElboWeights(NamedTuple):
    """The objective is `likelihood E_q ln p(x|z) - divergence KL(q(z|x) || p(z))`."""

    likelihood: Any
    divergence: Any


def elbo_weights(
    objective: Objective, *, alpha: float = 1.0, lambda_: float = 0.0
) -> ElboWeights:
    """Returns what the terms of the ELBO are multiplied by.

    With the ELBO for S, `E_q ln p(x|z)` for U and `alpha E_q ln p(x|z) - KL` for
    S_alpha, as with one sample, every objective is a beta-VAE (Higgins et al. 2017), up
    to a factor (Melis 2023, section 5.6): beta is 1 for `iwae`, `1 - lambda` for `kl`
    and `renyi`, `1 / alpha` for `power` and `alpha_iwae`, 0 for `u_hat`.

    Raises:
        ValueError: If there is no such objective.
    """
    monte_carlo_terms.decompose("elbo", objective, alpha=alpha, lambda_=lambda_)
    return {
        "iwae": ElboWeights(1.0, 1.0),
        "alpha_iwae": ElboWeights(alpha, 1.0),
        "u_hat": ElboWeights(1.0, 0.0),
        "kl": ElboWeights(1.0, 1.0 - lambda_),
        "renyi": ElboWeights(1.0, 1.0 - lambda_),
        "power": ElboWeights(1.0, 1.0 / alpha),
    }[objective]


def elbo(
    log_p_x_given_z: TensorLike,
    kl_q_p: TensorLike,
    *,
    objective: Objective = "iwae",
    alpha: float = 1.0,
    lambda_: float = 0.0,
) -> LossOutput:
    """Minus the ELBO, `E_q ln p(x|z) - KL(q(z|x) || p(z))`, or an objective of it.

    Args:
        log_p_x_given_z: `[K, ...]`, nats, of samples of q(z|x), floating point.
        kl_q_p: `[...]`, nats, computed exactly.
        objective: `iwae`: the ELBO itself; others: see `elbo_weights`.
        alpha: Of `alpha_iwae` and `power`.
        lambda_: Of `kl` and `renyi`.

    Returns:
        `loss` `[...]`, nats, dtype of `log_p_x_given_z`, and the weights.

    Raises:
        ValueError: If shapes do not fit, there is no sample or an option is impossible.
        TypeError: If `log_p_x_given_z` is not floating point.
    """
    log_likelihood = checked_log_likelihood("elbo", log_p_x_given_z)
    alpha, lambda_ = checked_options("elbo", alpha, lambda_, log_likelihood)
    weights = elbo_weights(objective, alpha=alpha, lambda_=lambda_)
    divergence = cast_like(kl_q_p, log_likelihood)
    mean = tf.reduce_mean(log_likelihood, axis=0)
    check_shapes("elbo", log_p_x_given_z=(mean, "..."), kl_q_p=(divergence, "..."))
    likelihood_weight, divergence_weight = (
        cast_like(weight, log_likelihood) for weight in weights
    )
    return LossOutput(
        divergence_weight * divergence - likelihood_weight * mean, weights
    )
