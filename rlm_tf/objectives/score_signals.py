"""What multiplies the scores of samples, less baselines that take noise away."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_shapes
from rlm_tf.numerics import cast_like
from rlm_tf.objectives import monte_carlo_terms
from rlm_tf.objectives.monte_carlo_samples import Samples
from rlm_tf.objectives.monte_carlo_terms import MonteCarloTerm

Baseline = Literal["swap_in", "leave_one_out"]


def score_signals(
    terms: list[MonteCarloTerm], samples: Samples, by_others: bool, baseline: Any
) -> tf.Tensor:
    """Returns what multiplies each sample's score, `[K, ...]`, dO/dln q apart.

    A term that does not have a sample would add to its score what is zero in
    expectation, and is left out.

    Args:
        terms: Of the objective O.
        samples: K of them.
        by_others: Whether a sample's baseline is made of the others (VIMCO).
        baseline: `swap_in` (or None) or `leave_one_out` if it is; else numbers `[...]`
            to be subtracted, or None. See `gradient_estimators.cotangents`.

    Raises:
        ValueError: If there is no such baseline, or too few samples for it.
    """
    if not by_others and isinstance(baseline, str):
        raise ValueError(
            "cotangents: `baseline` of 'reinforce' must be numbers or None, found "
            f"{baseline!r}; baselines of the other samples are VIMCO's."
        )
    total = tf.zeros_like(samples.log_ratio)
    for term in terms:
        used = samples.first(term.num_samples)
        value = monte_carlo_terms.value_of(term, samples)
        # An infinite term says nothing of how to mend it.
        value = tf.where(used.possible(), value, tf.zeros_like(value))
        signal = tf.repeat(value[tf.newaxis], tf.shape(used[0])[0], axis=0)
        if by_others:
            signal -= _baselines(term, samples, baseline)
        total += fill_up(signal, samples)
    if by_others or baseline is None:
        return total
    given = cast_like(baseline, total)
    if given.shape.rank != 0:
        check_shapes("cotangents", objective=(total[0], "..."), baseline=(given, "..."))
    return total - tf.stop_gradient(given)


def _baselines(term: MonteCarloTerm, samples: Samples, baseline: Any) -> tf.Tensor:
    """Returns the term without the news of each of its samples, `[N, ...]`."""
    if baseline is None:
        baseline = "swap_in"
    if not isinstance(baseline, str) or baseline not in get_args(Baseline):
        raise ValueError(
            "cotangents: `baseline` of 'vimco' must be 'swap_in' or 'leave_one_out', "
            f"found {baseline!r}."
        )
    there = samples.log_ratio.shape[0]
    if there is None:
        raise ValueError("cotangents: VIMCO needs a static number of samples.")
    count = term.num_samples or there
    if baseline == "leave_one_out":
        if count < 2:
            raise ValueError(
                "cotangents: `baseline='leave_one_out'` needs two samples in every "
                f"term, found {count}."
            )
        kept = [[j for j in range(count) if j != i] for i in range(count)]
        others = Samples(*(_by_sample(part, kept) for part in samples))
    else:
        if there < 2:
            raise ValueError(
                "cotangents: VIMCO needs two samples; one has no baseline "
                "(`estimator='reinforce'`)."
            )
        others = Samples(*(_swapped(part, count) for part in samples))
    found = monte_carlo_terms.value_of(term._replace(num_samples=None), others)
    # Where the others are impossible, none: that, too, does not depend on the sample.
    return tf.where(tf.math.is_finite(found), found, tf.zeros_like(found))


def _by_sample(values: tf.Tensor, kept: list[list[int]]) -> tf.Tensor:
    """Returns `[K', N, ...]`: for each of N samples, those K' that are kept."""
    gathered = tf.gather(values, tf.constant(kept))
    return tf.transpose(gathered, [1, 0, *range(2, gathered.shape.rank)])


def _swapped(values: tf.Tensor, count: int) -> tf.Tensor:
    """Returns `[N, N, ...]`, samples first: for each of N, its value replaced.

    The replacement is the mean over all other samples, also those that the term does
    not have.
    """
    number = values.shape[0]
    possible = values > -np.inf
    numbers = tf.where(possible, values, tf.zeros_like(values))
    means = (tf.reduce_sum(numbers, axis=0) - numbers) / (number - 1)
    impossible = tf.cast(~possible, values.dtype)
    others = tf.reduce_sum(impossible, axis=0) - impossible
    means = tf.where(others > 0, -np.inf * tf.ones_like(means), means)
    mask = tf.eye(count, dtype=tf.bool)
    mask = tf.reshape(mask, [count, count, *[1] * (values.shape.rank - 1)])
    return tf.where(mask, means[tf.newaxis, :count], values[:count, tf.newaxis])


def fill_up(values: tf.Tensor, samples: Samples) -> tf.Tensor:
    """Returns values of the first samples with zeros for the others."""
    missing = tf.shape(samples.log_ratio)[0] - tf.shape(values)[0]
    rest = [[0, 0]] * (values.shape.rank - 1)
    filled = tf.pad(values, [[0, missing], *rest])
    filled.set_shape(samples.log_ratio.shape)
    return filled
