"""Scores of the studies of seed words, and the errors of their differences."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.kit import seed_procedure


def test_booleans_come_back():
    right = np.random.default_rng(0).random(53) < 0.5
    np.testing.assert_array_equal(
        seed_procedure.unpacked(seed_procedure.packed(right)), right
    )


def test_the_bootstrap_sees_seeds_and_documents():
    rng = np.random.default_rng(0)
    documents = 400

    def arm(rates):
        return [rng.random(documents) < rate for rate in rates]

    # Seeds alike: the error is of documents alone.
    mean, error = seed_procedure.bootstrap_difference(arm([0.8] * 5), arm([0.7] * 5))
    expected = 100 * np.sqrt((0.8 * 0.2 + 0.7 * 0.3) / documents / 5)
    assert abs(mean - 10) < 3 * expected
    # Their noise counts once: by chance seeds differ more than that, or less.
    errors = [
        seed_procedure.bootstrap_difference(arm([0.8] * 5), arm([0.7] * 5), draws=200)
        for _ in range(40)
    ]
    mean_square = np.sqrt(np.mean([own**2 for _, own in errors]))
    assert expected < mean_square < 1.4 * expected
    # Seeds unlike each other: it is mostly of seeds.
    rates = [0.5, 0.9, 0.6, 0.8, 0.7]
    _, wide = seed_procedure.bootstrap_difference(arm(rates), arm([0.7] * 5))
    assert wide > 2 * error


def test_errors_of_few_seeds_are_not_too_small():
    """Seeds that differ by two points: the error is that of their mean, on average."""
    rng = np.random.default_rng(1)
    errors = []
    for _ in range(40):
        shares = 0.5 + 0.02 * rng.normal(size=3)
        own = [np.full(500, share) for share in shares]
        base = [np.full(500, 0.5)] * 3
        errors.append(seed_procedure.bootstrap_difference(own, base, draws=200)[1])
    true = 100 * 0.02 / np.sqrt(3)
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(true, rel=0.2)


def test_differences_are_told_of_three_seeds_or_more():
    right, wrong = np.ones(200, bool), np.zeros(200, bool)
    better = [{"seed": s, "right": seed_procedure.packed(right)} for s in range(3)]
    worse = [{"seed": s, "right": seed_procedure.packed(wrong)} for s in range(3)]
    assert seed_procedure.told_difference(better, worse) == "**+100.0 ± 0.0**"
    assert seed_procedure.told_difference(better[:2], worse) == "+100.0 ± 0.0"
    assert seed_procedure.told_difference(better, None) == ""


def test_who_says_nothing_is_wrong_and_no_class():
    truth, said = np.array([0, 0, 1, 1]), np.array([0, -1, 1, 1])
    found = seed_procedure.scores(truth, said)
    # F1 of 2/3 and of 1.
    assert found["macro"] == pytest.approx(100 * (2 / 3 + 1) / 2)
    assert found["micro"] == pytest.approx(75.0)
