"""Tests of the draws."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
import tensorflow as tf

from rlm_tf.generation import draw_tokens, filter_logits, row_seeds, uniform_draws
from tests.references import generation as reference

P = [0.4, 0.25, 0.14, 0.1, 0.07, 0.04]
NUM_DRAWS = 20_000


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({}, P),
        ({"temperature": 0.5}, reference.temperature(P, 0.5)),
        ({"top_k": 4}, reference.top_k(P, 4)),
        ({"top_p": 0.7}, reference.nucleus(P, 0.7)),
        (
            {"temperature": 2.0, "top_k": 5, "top_p": 0.8},
            reference.nucleus(reference.top_k(reference.temperature(P, 2.0), 5), 0.8),
        ),
    ],
)
def test_draws_follow_the_filtered_probabilities(parameters, expected):
    order = [3, 0, 5, 2, 1, 4]  # not sorted by probability
    logits = filter_logits(np.log(np.array(P)[order]).astype(np.float32), **parameters)
    uniforms = uniform_draws(row_seeds(1, 1), NUM_DRAWS)[0]
    tokens = draw_tokens(tf.tile(logits[tf.newaxis], [NUM_DRAWS, 1]), uniforms)
    counts = np.bincount(tokens, minlength=6)
    statistic, freedom = reference.chi_square(counts, np.array(expected)[order])
    assert statistic < scipy.stats.chi2.ppf(0.999, freedom)


def test_wrong_probabilities_fail_the_same_test():
    uniforms = uniform_draws(row_seeds(1, 1), NUM_DRAWS)[0]
    tokens = draw_tokens(
        tf.tile(tf.math.log([[0.4, 0.26, 0.14, 0.1, 0.07, 0.03]]), [NUM_DRAWS, 1]),
        uniforms,
    )
    statistic, freedom = reference.chi_square(np.bincount(tokens), np.array(P))
    assert statistic > scipy.stats.chi2.ppf(0.999, freedom)


def test_draws_of_rows_and_times_are_independent():
    draws = uniform_draws(row_seeds(5, 40), 500).numpy()
    assert scipy.stats.kstest(draws.ravel(), "uniform").pvalue > 1e-3
    correlation = np.corrcoef(draws) - np.eye(40)
    assert np.abs(correlation).max() < 5 / np.sqrt(500)
    shifted = np.corrcoef(draws[:, 1:].ravel(), draws[:, :-1].ravel())[0, 1]
    assert abs(shifted) < 5 / np.sqrt(draws.size)


def test_rows_and_longer_draws_do_not_change_earlier_ones():
    few = uniform_draws(row_seeds(3, 2), 5).numpy()
    many = uniform_draws(row_seeds(3, 7), 9).numpy()
    np.testing.assert_array_equal(many[:2, :5], few)
    assert uniform_draws(row_seeds(3, 0), 9).shape == (0, 9)
    assert uniform_draws(row_seeds(3, 2), 0).shape == (2, 0)


def test_seed_per_row_is_the_first_row_of_that_seed():
    own = uniform_draws(row_seeds([8, 3, 2**40], 3), 4).numpy()
    for row, seed in enumerate([8, 3, 2**40]):
        np.testing.assert_array_equal(own[row], uniform_draws(row_seeds(seed, 1), 4)[0])
    with pytest.raises(ValueError, match="scalar or have axes"):
        row_seeds([[1]], 1)


@pytest.mark.parametrize("u", [0.0, 0.5, 1.0 - 2.0**-52])
def test_impossible_tokens_are_never_drawn(u, rng):
    logits = rng.normal(size=(50, 9)).astype(np.float32)
    logits[:, [0, 4, 8]] = -np.inf
    tokens = draw_tokens(logits, np.full(50, u)).numpy()
    assert not np.isin(tokens, [0, 4, 8]).any()
    if u == 0.0:
        assert (tokens == 1).all()
    if u > 0.9:
        assert (tokens == 7).all()


def test_inverse_of_the_cumulative_distribution():
    logits = np.log([[0.25, 0.5, 0.25]] * 5)
    tokens = draw_tokens(logits, [0.0, 0.24, 0.26, 0.74, 0.76])
    np.testing.assert_array_equal(tokens, [0, 0, 1, 1, 2])
    assert tokens.dtype == tf.int32


def test_shapes_must_fit():
    with pytest.raises(ValueError, match=r"draw_tokens.*axis N"):
        draw_tokens(np.zeros((2, 3)), np.zeros(3))
