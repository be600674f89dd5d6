"""Rates of deletion: the oracle, enumeration, simulation, decimals."""

from __future__ import annotations

import fractions
import itertools

import numpy as np
import pytest

from rlm_tf.labelling import (
    best_deletion_ratio,
    deletion_counts,
    fixed_count_deletion_rate,
    seed_deletion_rate,
)
from tests.references.weak_supervision_reference import ORACLE


@pytest.mark.parametrize("row", ORACLE["best_ratio"]["rows"])
def test_best_ratios(row):
    sizes = (row["num_seeds"], row["num_indicative"])
    ratio = best_deletion_ratio(*sizes)
    assert ratio == pytest.approx(row["ratio"], rel=1e-10)
    rates = seed_deletion_rate([ratio, ratio - 1e-3, ratio + 1e-3], *sizes)
    assert rates[0] == pytest.approx(row["rate"], rel=1e-10) and rates.argmax() == 0


@pytest.mark.parametrize("row", ORACLE["rate_extremes"])
def test_rates_at_the_ends(row):
    found = seed_deletion_rate(row["ratio"], row["num_seeds"], row["num_indicative"])
    assert found == pytest.approx(row["rate"], rel=1e-9)


@pytest.mark.parametrize("row", ORACLE["fixed_count"]["rows"])
def test_a_fixed_number_by_enumeration(row):
    n, m = row["length"], row["deleted"]
    n_s, n_c = row["num_seeds"], row["num_indicative"]
    hits = total = 0
    for gone in itertools.combinations(range(n), m):
        seeds_gone = set(range(n_s)) <= set(gone)
        some_stays = not set(range(n_s, n_s + n_c)) <= set(gone)
        hits, total = hits + (seeds_gone and some_stays), total + 1
    expected = fractions.Fraction(hits, total)
    assert expected == fractions.Fraction(row["rate"])
    assert fixed_count_deletion_rate(n, m, n_s, n_c) == pytest.approx(float(expected))


@pytest.mark.parametrize("sizes", ["39/35/27", "286/277/140"])
def test_a_fixed_number_of_published_sizes(sizes):
    n, m, n_c = map(int, sizes.split("/"))
    expected = ORACLE["fixed_count"][sizes]
    assert fixed_count_deletion_rate(n, m, 1, n_c) == pytest.approx(expected, rel=1e-9)


def test_rates_of_independent_deletion_by_simulation():
    rng = np.random.default_rng(0)
    gone = rng.random([200_000, 5]) < 0.7
    rate = (gone[:, :2].all(axis=1) & ~gone[:, 2:].all(axis=1)).mean()
    assert seed_deletion_rate(0.7, 2, 3) == pytest.approx(rate, abs=4e-3)


@pytest.mark.parametrize("ratio", [*ORACLE["deletion_counts"]["counts"]])
def test_counts_of_deletion(ratio):
    given = ORACLE["deletion_counts"]["counts"][ratio]
    lengths = [int(length) for length in given]
    found = deletion_counts(lengths, float(ratio))
    assert found.dtype == np.int64 and found.tolist() == [*given.values()]


def test_counts_of_decimals():
    assert deletion_counts([100], 0.07).tolist() == [7]  # 0.07 * 100 > 7
    assert deletion_counts([[3, 10]], 0.9, keep=2).tolist() == [[1, 8]]
    assert deletion_counts([3], 1.0, keep=0).tolist() == [3]
    assert deletion_counts([], 0.5).shape == (0,)


def test_numbers_of_any_precision_count_as_they_are_written():
    for ratio in (0.07, np.float32(0.07), np.float64(0.07)):
        assert deletion_counts([100], ratio) == [7]
    assert best_deletion_ratio(1, 1e-9) == pytest.approx(np.exp(-1), rel=1e-8)
    assert not np.signbit(seed_deletion_rate(1.0, 1, 2))


def test_mistakes():
    with pytest.raises(ValueError, match="num_indicative"):
        best_deletion_ratio(1, 0)
    with pytest.raises(ValueError, match=r"`ratio` must lie in \[0, 1\]"):
        seed_deletion_rate(1.1, 1, 1)
    with pytest.raises(ValueError, match="not be negative"):
        seed_deletion_rate(0.1, -1, 1)
    with pytest.raises(ValueError, match="of 3 words 4 cannot be deleted"):
        fixed_count_deletion_rate(3, 4, 1, 1)
    with pytest.raises(ValueError, match="ratio"):
        deletion_counts([3], 1.5)
    with pytest.raises(ValueError, match="negative, found -1"):
        deletion_counts([-1], 0.5)
    with pytest.raises(TypeError, match="integers, found float64"):
        deletion_counts([1.5], 0.5)
