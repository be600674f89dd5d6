"""Gradient estimators of Monte Carlo objectives, apart from the objectives.

An objective O is a function of `l_i = ln p(x|z_i)`, `ln p(z_i)` and `ln q(z_i|x)`. Its
gradient reaches parameters by three ways, and an estimator is a choice of the factor of
every sample on each of them (`Cotangents`):

    model   the parameters of decoder and prior, at fixed z; always the derivative of O
    path    z, reparameterised, hence the parameters of q; the density of q held fixed
    score   the parameters of q in `ln q(z_i|x)`, z fixed

Source: Melis (2023), section 5.7, which names the estimators. The one of DReG for U and
for the Rényi objective is derived here (see `cotangents`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import tensorflow as tf

from rlm_tf.numerics import cast_like
from rlm_tf.objectives import monte_carlo, monte_carlo_terms
from rlm_tf.objectives.monte_carlo_samples import (
    Samples,
    checked_options,
    checked_samples,
    with_counts,
)
from rlm_tf.objectives.monte_carlo_terms import Grouping, MonteCarloTerm, Objective
from rlm_tf.objectives.score_signals import Baseline, fill_up, score_signals
from rlm_tf.typing import TensorLike

Estimator = Literal["reparameterised", "stl", "dreg", "reinforce", "vimco"]
REPARAMETERISED = ("reparameterised", "stl", "dreg")
SCORE_FUNCTION = ("reinforce", "vimco")


class Cotangents(NamedTuple):
    """What each sample's log-probabilities are multiplied by, `[K, ...]` each.

    The estimate of the gradient of O, not of the loss, is the sum over samples of each
    field times the gradient of what it is named after. None stands for zeros.

    Attributes:
        log_p_x_given_z: For the parameters of the decoder.
        log_p_z: For those of the prior.
        path_log_p_x_given_z: For z.
        path_log_p_z: For z.
        path_log_q_z: For z, with the parameters of q fixed.
        score: For the parameters of q in `ln q(z|x)`, with z fixed.
        extra: Of the objective.
        objective: `[...]`, O, nats.
    """

    log_p_x_given_z: tf.Tensor
    log_p_z: tf.Tensor
    path_log_p_x_given_z: tf.Tensor | None
    path_log_p_z: tf.Tensor | None
    path_log_q_z: tf.Tensor | None
    score: tf.Tensor | None
    extra: monte_carlo.MonteCarloExtra
    objective: tf.Tensor


def cotangents(
    log_p_x_given_z: TensorLike,
    log_p_z: TensorLike,
    log_q_z: TensorLike,
    *,
    objective: Objective,
    estimator: Estimator,
    alpha: float | tf.Tensor = 1.0,
    lambda_: float | tf.Tensor = 0.0,
    num_samples: tuple[int, int] | None = None,
    grouping: Grouping = "difference",
    baseline: Baseline | TensorLike | None = None,
) -> Cotangents:
    """Returns the factors of a gradient estimate; they carry no gradient themselves.

    With `h = ln p(z) - ln q(z|x)`, `w = softmax(l + h)`, `w' = softmax(alpha l + h)`
    and `R = (w' - w) / (alpha - 1)`, whose limit at alpha = 1 is `w (l - U)`, the
    derivatives are: of S, w by l and by h; of S_alpha, alpha w' by l and w' by h; of
    D_alpha, alpha R by l and R - w by h; by ln q minus those by h.

    - `reparameterised`: everything, through z and through the density of q.
    - `stl` (Roeder et al. 2017): leaves out the score, unbiased for one sample only.
    - `dreg` (Tucker et al. 2018): leaves out the score, and has on the path w^2 for w,
      w'^2 for w', and so `(w'^2 - w^2) / (alpha - 1)` for R, whose limit is
      `2 w^2 (l - U)`: for U, `w_i^2 (2 (l_i - U) d a_i + d l_i)` with `a = l + h`.
      Unbiased.
    - `reinforce`: score O (of the terms that have the sample) plus dO/dln q. Unbiased.
      A baseline that is given is subtracted from O.
    - `vimco` (Mnih and Rezende 2016): from O of each sample a baseline is subtracted
      that does not depend on it. Unbiased.

    Args:
        log_p_x_given_z: `[K, ...]`, nats, floating point.
        log_p_z: `[K, ...]`.
        log_q_z: `[K, ...]`.
        objective: See `rlm_tf.objectives.monte_carlo_terms.decompose`.
        estimator: Of the above; the last two do not differentiate z.
        alpha: Of the objective.
        lambda_: Of the objective.
        num_samples: Of evidence and divergence, see `kl_objective`.
        grouping: See `kl_objective`.
        baseline: Of `vimco`: `swap_in` (or None), O with l and h of the sample replaced
            by their means over the other samples, which for S is the published one;
            `leave_one_out`, O without the sample. Of `reinforce`: numbers `[...]` that
            do not depend on the samples, nats; None for none. Of the others: None.

    Raises:
        ValueError: If shapes or options do not fit, or VIMCO has one sample only.
        TypeError: If `log_p_x_given_z` is not floating point.
    """
    if estimator not in REPARAMETERISED + SCORE_FUNCTION:
        raise ValueError(
            "cotangents: `estimator` must be one of "
            f"{', '.join(REPARAMETERISED + SCORE_FUNCTION)}, found {estimator!r}."
        )
    if estimator in REPARAMETERISED and baseline is not None:
        raise ValueError(
            f"cotangents: `baseline` is of the estimators {', '.join(SCORE_FUNCTION)}; "
            f"leave it out with {estimator!r}."
        )
    samples = checked_samples("cotangents", log_p_x_given_z, log_p_z, log_q_z)
    samples = Samples(*map(tf.stop_gradient, samples))
    alpha, lambda_ = checked_options("cotangents", alpha, lambda_, samples[0])
    samples = with_counts("cotangents", samples, num_samples)
    terms = monte_carlo_terms.decompose(
        "cotangents",
        objective,
        alpha=alpha,
        lambda_=lambda_,
        num_samples=num_samples,
        grouping=grouping,
    )
    derivatives = _sum(terms, samples, _derivatives)
    path: Samples | None = derivatives
    score: tf.Tensor | None = -derivatives.log_ratio
    if estimator == "stl":
        score = None
    elif estimator == "dreg":
        path, score = _sum(terms, samples, _squared), None
    elif estimator in SCORE_FUNCTION:
        path = None
        score += score_signals(terms, samples, estimator == "vimco", baseline)
    return Cotangents(
        derivatives.log_likelihood,
        derivatives.log_ratio,
        None if path is None else path.log_likelihood,
        None if path is None else path.log_ratio,
        None if path is None else -path.log_ratio,
        score,
        monte_carlo.extra_of(samples),
        monte_carlo_terms.objective_value(terms, samples),
    )


# === Derivatives ===


def _sum(
    terms: list[MonteCarloTerm],
    samples: Samples,
    derivatives: Callable[[MonteCarloTerm, Samples], Samples],
) -> Samples:
    """Returns the derivatives of the sum of terms by l and h, `[K, ...]` each.

    Where a term has no sample that is possible it is infinite, and they are zero.
    """
    totals = [tf.zeros_like(samples.log_ratio)] * 2
    for term in terms:
        used = samples.first(term.num_samples)
        possible = used.possible()
        factor = cast_like(term.coefficient, used.log_ratio)
        for number, own in enumerate(derivatives(term, used.where_possible())):
            kept = tf.where(possible, own, tf.zeros_like(own))
            totals[number] += factor * fill_up(kept, samples)
    return Samples(*totals)


def _derivatives(term: MonteCarloTerm, samples: Samples) -> Samples:
    weights = monte_carlo_terms.normalised_weights(samples)
    if term.kind == "evidence":
        return Samples(weights, weights)
    alpha = cast_like(term.alpha, weights)
    if term.kind == "alpha_evidence":
        tilted = monte_carlo_terms.normalised_weights(samples, alpha)
        return Samples(alpha * tilted, tilted)
    ratio = _difference(samples, weights, alpha, power=1)
    return Samples(alpha * ratio, ratio - weights)


def _squared(term: MonteCarloTerm, samples: Samples) -> Samples:
    weights = monte_carlo_terms.normalised_weights(samples)
    squares = tf.square(weights)
    if term.kind == "evidence":
        return Samples(squares, squares)
    alpha = cast_like(term.alpha, weights)
    if term.kind == "alpha_evidence":
        tilted = tf.square(monte_carlo_terms.normalised_weights(samples, alpha))
        return Samples(alpha * tilted, tilted)
    ratio = _difference(samples, weights, alpha, power=2)
    return Samples(alpha * ratio, ratio - squares)


def _difference(
    samples: Samples, weights: tf.Tensor, alpha: tf.Tensor, power: int
) -> tf.Tensor:
    """Returns `(w'^power - w^power) / (alpha - 1)`, its limit at alpha = 1."""
    excess = alpha - 1.0
    is_one = tf.equal(excess, 0.0)
    safe = tf.where(is_one, tf.ones_like(excess), excess)
    # ln(w'/w) / (alpha - 1): nothing in it grows as alpha approaches 1.
    tilt = monte_carlo_terms.log_tilt(samples, weights, alpha)
    slope = power * (monte_carlo_terms.centred(samples, weights) - tilt)
    exponent = excess * slope
    is_small = tf.abs(exponent) < 0.5
    little = tf.where(is_small, exponent, tf.zeros_like(exponent))
    before = weights**power
    tilted = monte_carlo_terms.normalised_weights(samples, alpha) ** power
    difference = tf.where(is_small, before * tf.math.expm1(little), tilted - before)
    return tf.where(is_one, before * slope, difference / safe)
