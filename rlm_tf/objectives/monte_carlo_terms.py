"""What Monte Carlo objectives are sums of: evidence, alpha evidence, divergence.

With samples `z_1..z_K ~ q(z|x)`, `l = ln p(x|z)` and `h = ln p(z) - ln q(z|x)` of each:

    S        = ln mean_i exp(l_i + h_i)              estimates ln p(x)
    S_alpha  = ln mean_i exp(alpha l_i + h_i)        estimates ln p^alpha(x)
    D_alpha  = (S_alpha - alpha S) / (alpha - 1)     estimates D_alpha(p(z|x) || p(z))

`D_1` is the limit `U - S`, the estimate of `KL(p(z|x) || p(z))`, where `U` is the mean
of `l` under the weights `w = softmax(l + h)`. All objectives of Melis (2023, chapter 5)
are sums of these with constant factors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_integer
from rlm_tf.numerics import cast_like, log_mean_exp, multiply_no_nan_log
from rlm_tf.objectives.monte_carlo_samples import Samples

Kind = Literal["evidence", "alpha_evidence", "divergence"]
Objective = Literal["iwae", "alpha_iwae", "u_hat", "kl", "renyi", "power"]
Grouping = Literal["difference", "terms"]

# Where (alpha - 1) (l - U) is smaller, exponentials lose digits that exponentials minus
# one keep.
_SMALL = 0.5
# Beyond exp(_LARGE) one is nothing, and far beyond it numbers are not finite.
_LARGE = 30.0


class MonteCarloTerm(NamedTuple):
    """One term of an objective.

    Attributes:
        kind: `evidence` is S, `alpha_evidence` S_alpha, `divergence` D_alpha.
        coefficient: What it is multiplied by.
        alpha: Of this term; evidence has none.
        num_samples: It is computed from the first ones; None: from all.
    """

    kind: Kind
    coefficient: Any
    alpha: Any = 1.0
    num_samples: int | None = None


def decompose(
    function: str,
    objective: Objective,
    *,
    alpha: Any = 1.0,
    lambda_: Any = 0.0,
    num_samples: tuple[int, int] | None = None,
    grouping: Grouping = "difference",
) -> list[MonteCarloTerm]:
    """Returns the terms of an objective.

    Args:
        function: Name of the caller; messages start with it.
        objective: `iwae` is S, `alpha_iwae` S_alpha, `u_hat` U = S + D_1, `kl`
            S + lambda D_1, `renyi` S + lambda D_alpha, `power` S_alpha / alpha.
        alpha: Of `alpha_iwae`, `renyi` and `power`.
        lambda_: Of `kl` and `renyi`.
        num_samples: How many samples the evidence N and the divergence M get, of `kl`
            and `renyi`; None: all.
        grouping: Which form these counts are of: `difference` is (5.12) and (5.16),
            S^N + lambda D^M; `terms` is (5.11) and (5.15), in which what multiplies
            lambda as it stands gets M, and evidence N everywhere.

    Raises:
        ValueError: If an argument is none of these.
    """
    if objective not in ("iwae", "alpha_iwae", "u_hat", "kl", "renyi", "power"):
        raise ValueError(
            f"{function}: `objective` must be iwae, alpha_iwae, u_hat, kl, renyi or "
            f"power, found {objective!r}."
        )
    if grouping not in ("difference", "terms"):
        raise ValueError(
            f"{function}: `grouping` must be 'difference' or 'terms', found "
            f"{grouping!r}."
        )
    for_evidence = for_divergence = None
    if num_samples is not None:
        if objective not in ("kl", "renyi"):
            raise ValueError(
                f"{function}: `num_samples` of evidence and divergence is for the "
                f"objectives kl and renyi, found {objective!r}."
            )
        for_evidence, for_divergence = num_samples
        check_integer(function, "num_samples[0]", for_evidence, 1)
        check_integer(function, "num_samples[1]", for_divergence, 1)
    if objective == "alpha_iwae":
        return [MonteCarloTerm("alpha_evidence", 1.0, alpha)]
    if objective == "power":
        return [MonteCarloTerm("alpha_evidence", 1.0 / alpha, alpha)]
    if objective == "iwae":
        return [MonteCarloTerm("evidence", 1.0)]
    if objective == "u_hat":
        lambda_ = 1.0
    if objective != "renyi":
        alpha = 1.0
    if grouping == "difference" or for_evidence == for_divergence:
        return [
            MonteCarloTerm("evidence", 1.0, num_samples=for_evidence),
            MonteCarloTerm("divergence", lambda_, alpha, for_divergence),
        ]
    if objective == "kl":
        return [
            MonteCarloTerm("evidence", 1.0 - lambda_, num_samples=for_evidence),
            MonteCarloTerm("evidence", lambda_, num_samples=for_divergence),
            MonteCarloTerm("divergence", lambda_, 1.0, for_divergence),
        ]
    known = tf.get_static_value(tf.convert_to_tensor(alpha))
    if known is not None and np.any(known == 1):
        raise ValueError(
            f"{function}: with `grouping='terms'` and two counts of samples the Rényi "
            "objective has no limit at `alpha` = 1; found 1."
        )
    # lambda S_alpha^M / (alpha - 1) as lambda D_alpha^M and a multiple of S^M, which
    # keeps the digits of the former near alpha = 1.
    share = lambda_ * alpha / (alpha - 1.0)
    return [
        MonteCarloTerm("evidence", -share, num_samples=for_evidence),
        MonteCarloTerm("evidence", share, num_samples=for_divergence),
        MonteCarloTerm("evidence", 1.0, num_samples=for_evidence),
        MonteCarloTerm("divergence", lambda_, alpha, for_divergence),
    ]


# === Values ===


def objective_value(parts: Sequence[MonteCarloTerm], samples: Samples) -> tf.Tensor:
    """Returns the sum of the terms, `[...]`.

    Minus infinity where S or S_alpha of a term is. Terms are computed from likelihoods
    relative to the largest one, which is added in the end: coefficients may be large
    and of both signs, and would magnify what is rounded off large numbers.
    """
    likelihood = samples.log_likelihood
    there = likelihood > -np.inf
    largest = tf.reduce_max(tf.where(there, likelihood, likelihood.dtype.min), axis=0)
    largest = tf.where(tf.reduce_any(there, axis=0), largest, tf.zeros_like(largest))
    largest = tf.stop_gradient(largest)
    relative = Samples(likelihood - largest, samples.log_ratio)
    total, multiple = tf.zeros_like(largest), tf.zeros([], largest.dtype)
    possible = tf.ones_like(largest, tf.bool)
    for part in parts:
        used = relative.first(part.num_samples)
        total += value_of(part._replace(num_samples=None), used.where_possible())
        if part.kind == "divergence":
            continue
        possible &= used.possible()
        # A constant in l is one in S, and alpha times that in S_alpha.
        factor = part.alpha if part.kind == "alpha_evidence" else 1.0
        multiple += cast_like(part.coefficient, total) * cast_like(factor, total)
    return tf.where(possible, total + multiple * largest, -np.inf)


def value_of(term: MonteCarloTerm, samples: Samples) -> tf.Tensor:
    """Returns the term `[...]`, times its coefficient; the samples come first."""
    samples = samples.first(term.num_samples)
    if term.kind == "evidence":
        value = evidence(samples)
    elif term.kind == "alpha_evidence":
        value = alpha_evidence(samples, term.alpha)
    else:
        value = divergence(samples, term.alpha)
    return cast_like(term.coefficient, value) * value


def evidence(samples: Samples) -> tf.Tensor:
    """Returns S, `[...]`."""
    return log_mean_exp(samples.log_likelihood + samples.log_ratio)


def alpha_evidence(samples: Samples, alpha: Any) -> tf.Tensor:
    """Returns S_alpha, `[...]`."""
    alpha = cast_like(alpha, samples.log_ratio)
    return log_mean_exp(alpha * samples.log_likelihood + samples.log_ratio)


def divergence(samples: Samples, alpha: Any) -> tf.Tensor:
    """Returns D_alpha, `[...]`, without the cancellation of its definition.

        D_alpha = U - S + (1 / (alpha - 1)) ln sum_i w_i exp((alpha - 1) (l_i - U))

    The direct form loses all digits near alpha = 1: at log-likelihoods of -150 in
    single precision it is wrong by 3e-2 at alpha - 1 = 1e-3.
    """
    # Where no sample is possible, S is what makes an objective infinite; this is zero.
    samples = samples.where_possible()
    weights = normalised_weights(samples)
    tilt = log_tilt(samples, weights, alpha)
    return u_hat(samples, weights) - evidence(samples) + tilt


def u_hat(samples: Samples, weights: tf.Tensor) -> tf.Tensor:
    """Returns U, `[...]`; samples without weight may have any likelihood."""
    products = multiply_no_nan_log(weights, samples.log_likelihood)
    return tf.reduce_sum(products, axis=0)


def normalised_weights(samples: Samples, alpha: Any = 1.0) -> tf.Tensor:
    """Returns `softmax(alpha l + h)` over the samples, `[K, ...]`.

    Zero where no sample is possible.
    """
    alpha = cast_like(alpha, samples.log_ratio)
    likelihood, ratio = samples.where_possible()
    weights = tf.nn.softmax(alpha * likelihood + ratio, axis=0)
    return tf.where(samples.possible(), weights, tf.zeros_like(weights))


def log_tilt(samples: Samples, weights: tf.Tensor, alpha: Any) -> tf.Tensor:
    """Returns `ln(sum_i w_i exp((alpha - 1) (l_i - U))) / (alpha - 1)`, `[...]`.

    Zero at alpha = 1.
    """
    excess = cast_like(alpha, weights) - 1.0
    is_one = tf.equal(excess, 0.0)
    safe = tf.where(is_one, tf.ones_like(excess), excess)
    scaled = excess * centred(samples, weights)
    log_weights = tf.nn.log_softmax(samples.log_likelihood + samples.log_ratio, axis=0)
    tilted = log_weights + scaled
    # Of a sum of ones and small numbers, the latter are kept: each w exp(s) is taken
    # less its w, and by Jensen's inequality the sum of these is not negative. No branch
    # may be infinite where another one is taken: gradients would be not a number.
    is_small = tf.abs(scaled) < _SMALL
    little = tf.where(is_small, scaled, tf.zeros_like(scaled))
    by_difference = tf.exp(tf.minimum(tilted, _LARGE)) - weights
    excesses = tf.where(is_small, weights * tf.math.expm1(little), by_difference)
    by_log1p = tf.math.log1p(tf.maximum(tf.reduce_sum(excesses, axis=0), -_SMALL))
    is_large = tf.reduce_max(tilted, axis=0) > _LARGE
    result = tf.where(is_large, tf.reduce_logsumexp(tilted, axis=0), by_log1p) / safe
    return tf.where(is_one, tf.zeros_like(result), result)


def centred(samples: Samples, weights: tf.Tensor) -> tf.Tensor:
    """Returns `l - U`, `[K, ...]`, zero for impossible samples.

    Samples whose weight is too small for a number have theirs: with (alpha - 1) times
    it, they may outweigh all others.
    """
    differences = samples.log_likelihood - u_hat(samples, weights)
    possible = tf.math.is_finite(samples.log_likelihood)
    return tf.where(possible, differences, tf.zeros_like(differences))
