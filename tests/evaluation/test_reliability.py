"""Tests of accuracy by confidence."""

from __future__ import annotations

import numpy as np
import pytest

from rlm_tf.evaluation import reliability


def test_bins_by_loops():
    rng = np.random.default_rng(1)
    sure = rng.random(500)
    right = rng.random(500) < sure**2
    found = reliability(sure, right, bins=7)
    error = 0.0
    for number in range(7):
        inside = [
            i
            for i in range(500)
            if number / 7 <= sure[i] and (sure[i] < (number + 1) / 7 or number == 6)
        ]
        confidence, accuracy = np.mean(sure[inside]), np.mean(right[inside])
        assert found.counts[number] == len(inside)
        assert found.confidence[number] == pytest.approx(confidence)
        assert found.accuracy[number] == pytest.approx(accuracy)
        error += len(inside) / 500 * abs(confidence - accuracy)
    assert found.expected_error == pytest.approx(error)


def test_empty_bins_are_left_out_and_one_is_in_the_last():
    found = reliability(np.array([0.05, 1.0]), np.array([False, True]))
    np.testing.assert_array_equal(found.counts, [1, 1])
    np.testing.assert_array_equal(found.accuracy, [0, 1])
    assert found.expected_error == pytest.approx(0.025)


@pytest.mark.parametrize(
    ("sure", "right", "message"),
    [
        ([0.5], [True, False], r"axes \[N\], found \(1,\) and \(2,\)"),
        ([], [], "N >= 1"),
        ([1.5], [True], "probabilities"),
        ([np.nan], [True], "probabilities"),
    ],
)
def test_mistakes_are_named(sure, right, message):
    with pytest.raises(ValueError, match=message):
        reliability(np.array(sure), np.array(right))
    with pytest.raises(ValueError, match="bins"):
        reliability(np.array([0.5]), np.array([True]), bins=0)
