"""Frontiers against comparison of all pairs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rlm_tf.evaluation import least_costs, pareto_frontier


def _beaten(costs, gains, index):
    better = (costs <= costs[index]) & (gains >= gains[index])
    strictly = (costs < costs[index]) | (gains > gains[index])
    return np.any(better & strictly)


def test_frontier_is_what_no_other_point_beats(rng):
    for size in (1, 2, 40):
        costs, gains = np.round(rng.normal(size=(2, size)), 1)
        found = pareto_frontier(costs, gains)
        kept = {
            (costs[i], gains[i]) for i in range(size) if not _beaten(costs, gains, i)
        }
        assert {(costs[i], gains[i]) for i in found} == kept
        assert len(found) == len(kept)
        assert np.all(np.diff(gains[found]) > 0) and np.all(np.diff(costs[found]) > 0)


def test_of_equal_points_the_first_is_kept_and_beaten_ones_are_not():
    assert pareto_frontier([1.0, 1.0, 1.0], [2.0, 2.0, 1.0]) == [0]
    assert pareto_frontier([3.0, 1.0, 2.0, 2.0], [5.0, 1.0, 5.0, 4.0]) == [1, 2]


def test_levels_and_what_is_no_number():
    costs, gains = [1.0, 2.0, math.nan, 0.5], [0.0, 3.0, 9.0, math.inf]
    assert pareto_frontier(costs, gains) == [0, 1]
    found = least_costs(costs, gains, [0.0, 1.0, 4.0])
    assert found[:2] == [1.0, 2.0] and math.isnan(found[2])
    assert pareto_frontier([], []) == []
    with pytest.raises(ValueError, match="vectors of one length"):
        pareto_frontier([1.0], [1.0, 2.0])
