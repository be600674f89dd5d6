"""Estimates of how far the posterior of the latents is from their prior."""

from __future__ import annotations

import tensorflow as tf

from rlm_tf.objectives import monte_carlo_terms
from rlm_tf.objectives.monte_carlo_samples import checked_options, checked_samples
from rlm_tf.typing import TensorLike


def posterior_divergence(
    log_p_x_given_z: TensorLike,
    log_p_z: TensorLike,
    log_q_z: TensorLike,
    *,
    alpha: float | tf.Tensor = 1.0,
) -> tf.Tensor:
    """Returns the estimate of the Rényi divergence `D_alpha(p(z|x) || p(z))`.

        D_alpha = (S_alpha - alpha S) / (alpha - 1)

    At `alpha = 1` its limit U - S, the estimate of `KL(p(z|x) || p(z))`, whose mean
    over x is the mutual information of x and z. Consistent as K grows; with few samples
    it is biased, mostly down where q is near the prior.

    Args:
        log_p_x_given_z: `[K, ...]`, nats, of samples of q(z|x), floating point.
        log_p_z: `[K, ...]`.
        log_q_z: `[K, ...]`.
        alpha: Positive; a scalar, or `[...]`.

    Returns:
        `[...]`, nats, dtype of `log_p_x_given_z`.

    Raises:
        ValueError: If shapes do not fit or `alpha` is not positive.
        TypeError: If `log_p_x_given_z` is not floating point.
    """
    function = "posterior_divergence"
    samples = checked_samples(function, log_p_x_given_z, log_p_z, log_q_z)
    alpha, _ = checked_options(function, alpha, 0.0, samples.log_likelihood)
    return monte_carlo_terms.divergence(samples, alpha)
