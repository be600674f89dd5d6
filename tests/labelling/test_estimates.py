"""Noise and accuracy: the oracle, cleanlab where it is there, coverage of intervals."""

from __future__ import annotations

import numpy as np
import pytest

from rlm_tf.labelling import (
    accuracy_from_labels,
    binomial_interval,
    choose_to_label,
    confident_joint,
)
from tests.references.weak_supervision_reference import ORACLE

_JOINT = ORACLE["confident_joint"]


@pytest.mark.parametrize("probability", [0.9, 0.7, 0.55, 0.1, 1 / 3])
def test_equal_confidences_reach_their_mean(probability):
    probs = np.full([11, 2], [1 - probability, probability])
    probs[:10] = [probability, 1 - probability]
    labels = np.array([0] * 10 + [1])
    found = confident_joint(labels, probs)
    assert found.joint.sum() == 11


def test_the_confident_joint_of_the_oracle():
    found = confident_joint(_JOINT["labels"], _JOINT["probabilities"])
    np.testing.assert_array_equal(found.joint, _JOINT["joint"])
    np.testing.assert_allclose(found.calibrated, _JOINT["calibrated"], atol=1e-9)
    assert found.noise_rate == pytest.approx(_JOINT["noise_rate"])
    # What has no label says nothing.
    more = confident_joint(
        [*_JOINT["labels"], -1], [*_JOINT["probabilities"], [1.0, 0.0, 0.0]]
    )
    np.testing.assert_array_equal(more.joint, found.joint)


@pytest.mark.peers
def test_the_joint_is_that_of_cleanlab():
    count = pytest.importorskip("cleanlab.count", reason="cleanlab is not installed")
    rng = np.random.default_rng(0)
    true = rng.integers(0, 3, 500)
    labels = np.where(rng.random(500) < 0.8, true, rng.integers(0, 3, 500))
    probs = rng.dirichlet([1, 1, 1], 500) + np.eye(3)[true]
    probs /= probs.sum(axis=1, keepdims=True)
    expected = count.compute_confident_joint(labels, probs, calibrate=False)
    np.testing.assert_array_equal(confident_joint(labels, probs).joint, expected)


def test_a_class_without_documents():
    found = confident_joint(
        [0, 0, 1], [[0.9, 0.1, 0.0], [0.8, 0.2, 0.0], [0.3, 0.7, 0.0]]
    )
    assert found.joint[2].tolist() == [0, 0, 0] and found.noise_rate == 0
    assert found.calibrated.sum() == pytest.approx(1)


@pytest.mark.parametrize("row", ORACLE["intervals"])
@pytest.mark.parametrize("method", ["clopper-pearson", "wilson"])
def test_intervals(row, method):
    found = binomial_interval(
        row["successes"], row["trials"], level=row["level"], method=method
    )
    expected = row[method.replace("-", "_")]
    np.testing.assert_allclose(found, expected, atol=1e-9)


def _population(kind, accuracy, number=3000):
    """Which predictions are right, and confidences of several kinds."""
    rng = np.random.default_rng(int(1000 * accuracy))
    spread = 1.6 * rng.normal(size=number)
    shifts = np.linspace(-12, 12, 4801)
    means = [np.mean(1 / (1 + np.exp(-(spread + shift)))) for shift in shifts]
    logits = spread + shifts[np.argmin(np.abs(np.array(means) - accuracy))]
    right = rng.random(number) < 1 / (1 + np.exp(-logits))
    logits = {
        "calibrated": logits,
        "too sure": 3 * logits,
        "useless": rng.permutation(logits),
    }[kind]
    return right, 1 / (1 + np.exp(-logits))


@pytest.mark.landing
@pytest.mark.parametrize("accuracy", [0.5, 0.7, 0.8, 0.9, 0.95])
@pytest.mark.parametrize("kind", ["calibrated", "too sure", "useless"])
def test_coverage_and_width_of_fifty_labels(kind, accuracy):
    right, confidence = _population(kind, accuracy)
    true, covered, width, simple, errors = right.mean(), 0, 0.0, 0.0, []
    for seed in range(1000):
        chosen = choose_to_label(confidence, 50, seed=seed)
        found = accuracy_from_labels(
            right[chosen.indices], chosen.strata, chosen.stratum_sizes
        )
        covered += found.low <= true <= found.high
        width += found.high - found.low
        errors.append(found.value - true)
        rows = np.random.default_rng(seed).choice(len(right), 50, replace=False)
        low, high = binomial_interval(int(right[rows].sum()), 50)
        simple += high - low
    assert covered >= 930
    assert width / simple <= (0.9 if kind == "calibrated" else 1.05)
    assert abs(np.mean(errors)) < 4 * np.std(errors) / np.sqrt(1000)


def test_choices_are_distinct_and_of_all_strata():
    rng = np.random.default_rng(0)
    confidence = rng.beta(4, 1, 1000)
    found = choose_to_label(confidence, 50, seed=1)
    assert len(np.unique(found.indices)) == 50 and found.stratum_sizes.sum() == 1000
    assert np.bincount(found.strata).tolist() == [10] * 5
    means = [confidence[found.indices[found.strata == s]].mean() for s in range(5)]
    assert means == sorted(means)
    again = choose_to_label(confidence, 50, seed=1)
    np.testing.assert_array_equal(found.indices, again.indices)
    few = choose_to_label(confidence[:7], 50, seed=1)
    assert sorted(few.indices) == [*range(7)]
    # Whoever has seen everything is sure.
    right = rng.random(7) < 0.5
    seen = accuracy_from_labels(right[few.indices], few.strata, few.stratum_sizes)
    assert seen == pytest.approx([right.mean()] * 3)
    # Of all but one there is a little left.
    less = accuracy_from_labels(right, np.zeros(7, int), [8])
    assert less.low < right.mean() < less.high


def test_a_simple_sample_has_the_interval_of_its_trials():
    right = np.arange(50) < 45
    found = accuracy_from_labels(right, np.zeros(50, int), [1000])
    assert found == pytest.approx((0.9, *binomial_interval(45, 50)))
    both = accuracy_from_labels([True, False, True], [0, 1, 1], [10, 30])
    assert both.value == pytest.approx(0.25 + 0.75 * 0.5)
    assert both.low < both.value < both.high


def test_mistakes():
    with pytest.raises(ValueError, match=r"`labels` must be \[N\] and `probs`"):
        confident_joint([0], [0.5, 0.5])
    with pytest.raises(ValueError, match=r"the classes 0 to 1, found \[2\]"):
        confident_joint([2], [[0.5, 0.5]])
    with pytest.raises(ValueError, match="found 3 successes of 2 trials"):
        binomial_interval(3, 2)
    with pytest.raises(ValueError, match=r"must lie in \[0, 1\]"):
        choose_to_label([1.5], 1, seed=0)
    with pytest.raises(ValueError, match="no draw of stratum 1"):
        accuracy_from_labels([True], [0], [5, 5])
    with pytest.raises(ValueError, match=r"0 to 0, found \[0, 1\]"):
        accuracy_from_labels([True, False], [0, 1], [5])
