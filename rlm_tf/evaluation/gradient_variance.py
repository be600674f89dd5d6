"""How noisy the gradients of Phase II are, parameter by parameter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from rlm_tf.evaluation.gradient_moments import GradientMoments, joined
from rlm_tf.models.bmi.bootstrapped_mutual_information import (
    BootstrappedMutualInformation,
)


class GradientVariance(NamedTuple):
    """Of the gradient of Phase II by the language model's parameters.

    Attributes:
        mean: Over batches, float64 `[P]`.
        variance: Of one batch's gradient, float64 `[P]`.
        signal: The norm of the expected gradient, the noise of the mean subtracted.
        noise: Square root of the sum of variances.
        batches: How many.
    """

    mean: np.ndarray
    variance: np.ndarray
    signal: float
    noise: float
    batches: int


class VarianceRatio(NamedTuple):
    """Variances of one gradient over those of another, parameter by parameter.

    Parameters whose gradient is always zero for either have none.

    Attributes:
        raw: As they are; scale counts: a loss divided by B has variances 1 / B^2.
        scaled: With both gradients scaled to one `signal`: noise over signal, squared.
            nan where the numerator's signal cannot be told from 0: then its noise is
            larger than any number of times of it.
    """

    raw: np.ndarray
    scaled: np.ndarray


def gradient_variance(
    model: BootstrappedMutualInformation, batches: Iterable[Any]
) -> GradientVariance:
    """Returns mean and variance of Phase II's gradient over batches.

    Weights stay; what a step draws, dropout and what the model says, is drawn anew for
    each batch. The gradient is that of the term alone, without its weight and before it
    is clipped: Cao and Xu (2019), Figure 3.

    Args:
        model: With `phase_two`, in its second phase.
        batches: At least two, as `fit` takes them: `((tokens, start, pairs),
            next_tokens, weights)`.

    Raises:
        ValueError: If the model is in no second phase, or there are too few batches.
    """
    name = model.phase_two
    if name is None or not model.term_counts(name, training=True):
        raise ValueError(
            "gradient_variance: the model must have a `phase_two` and be in it "
            "(`set_phase(1)`)."
        )
    variables = [variable.value for variable in model.model.trainable_variables]

    @tf.function(autograph=False, reduce_retracing=True)
    def draw(x: Any, y: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            terms = model.objective_terms(x, y, weights, training=True)
            assert isinstance(terms, Mapping)
            term = terms[name]
            share = tf.stop_gradient(tf.cast(term.weights, tf.float32))
            losses = tf.cast(term.loss, tf.float32)
            loss = tf.reduce_sum(losses * share) / tf.reduce_sum(share)
        gradients = tape.gradient(loss, variables)
        return joined([*zip(variables, gradients, strict=True)])

    moments = GradientMoments()
    for batch in batches:
        moments.add(draw(*batch).numpy().astype(np.float64))
    if moments.count < 2:
        raise ValueError(
            f"gradient_variance: needs at least two batches, found {moments.count}."
        )
    signal, noise = moments.signal_and_noise()
    return GradientVariance(
        moments.mean, moments.variance, signal, noise, moments.count
    )


def variance_ratio(
    numerator: GradientVariance, denominator: GradientVariance
) -> VarianceRatio:
    """Compares the gradients of two estimators of Phase II.

    Raises:
        ValueError: If they are of other parameters.
    """
    if numerator.variance.shape != denominator.variance.shape:
        raise ValueError(
            "variance_ratio: both gradients must be of the same parameters, found "
            f"{numerator.variance.size:,} and {denominator.variance.size:,}."
        )
    there = (numerator.variance > 0) & (denominator.variance > 0)
    raw = numerator.variance[there] / denominator.variance[there]
    # Not of the norms of means, which are mostly noise where signals are small.
    scale = denominator.signal / numerator.signal if numerator.signal else np.nan
    return VarianceRatio(raw, raw * scale**2)
