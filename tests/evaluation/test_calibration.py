"""Calibration: numbers computed two ways, loops, ends of temperatures, metrics."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.optimize
import scipy.special

from rlm_tf.evaluation import (
    brier_score,
    expected_calibration_error,
    fidelity,
    fit_temperature,
    reliability,
)
from rlm_tf.metrics import (
    Agreement,
    BrierScore,
    ExpectedCalibrationError,
    NegativeLogLikelihood,
    TeacherDivergence,
)
from tests.references.distillation_reference import ORACLE

_ORACLE = ORACLE["calibration"]
_PROBS, _LABELS = (np.array(_ORACLE[key]) for key in ("probs", "labels"))
_TEMPERATURE = _ORACLE["temperature"]
_LOGITS, _OWN = (np.array(_TEMPERATURE[key]) for key in ("logits", "labels"))


# === Numbers computed two ways ===


def test_errors_are_those_of_the_oracle():
    for bins, expected in _ORACLE["ece_right_closed"].items():
        found = expected_calibration_error(_PROBS, _LABELS, bins=int(bins))
        assert found == pytest.approx(expected, abs=1e-12)
    assert brier_score(_PROBS, _LABELS) == pytest.approx(_ORACLE["brier"], abs=1e-12)


def test_temperature_is_that_of_the_oracle():
    found = fit_temperature(_LOGITS, _OWN)
    assert found.temperature == pytest.approx(_TEMPERATURE["T_opt"], rel=1e-9)
    assert found.nll_before == pytest.approx(_TEMPERATURE["nll_T1"], abs=1e-10)
    assert found.nll_after == pytest.approx(_TEMPERATURE["nll_Topt"], abs=1e-10)
    # The calibration error may rise meanwhile.
    for temperature, key in ((1.0, "ece15_T1"), (found.temperature, "ece15_Topt")):
        probs = scipy.special.softmax(_LOGITS / temperature, axis=1)
        error = expected_calibration_error(probs, _OWN)
        assert error == pytest.approx(_TEMPERATURE[key], abs=1e-8)


def test_fidelity_is_that_of_the_oracle():
    given = _ORACLE["fidelity"]
    teacher, student = (
        np.eye(3)[given[key]] * 0.7 + 0.1 for key in ("teacher_pred", "student_pred")
    )
    found = fidelity(teacher, student)
    assert 100 * found.agreement == given["agreement_percent"]
    # Of one of five they differ.
    assert found.divergence == pytest.approx(0.7 * math.log(8) / 5)


# === Temperature ===


def test_two_classes_with_one_gap_have_a_closed_form():
    given = _TEMPERATURE["analytic"]
    number = 50
    logits = np.tile([0.0, given["d"]], (number, 1))
    labels = (np.arange(number) < given["q"] * number).astype(int)
    found = fit_temperature(logits, labels)
    assert found.temperature == pytest.approx(given["T"], rel=1e-9)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_temperature_is_where_the_loss_is_least(scale):
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(200, 4)) * scale
    labels = np.where(rng.random(200) < 0.5, logits.argmax(1), rng.integers(0, 4, 200))

    def nll(log_t):
        scores = scipy.special.log_softmax(logits / math.exp(log_t), axis=1)
        return -scores[np.arange(200), labels].mean()

    found = fit_temperature(logits, labels)
    expected = scipy.optimize.minimize_scalar(
        nll, bounds=(math.log(scale) - 5, math.log(scale) + 5), method="bounded"
    )
    assert found.nll_after == pytest.approx(expected.fun, abs=1e-9)
    assert math.log(found.temperature) == pytest.approx(expected.x, abs=1e-3)
    # A scale of the logits is one of the temperature.
    other = fit_temperature(3 * logits + 7, labels)
    assert other.temperature == pytest.approx(3 * found.temperature, rel=1e-6)


def test_ends_are_reported():
    logits = np.array([[3.0, 0.0, 1.0], [0.0, 2.0, 1.0]])
    right = fit_temperature(logits, np.array([0, 1]))
    assert (right.temperature, right.nll_after) == (0.0, 0.0)
    ties = fit_temperature(np.array([[1.0, 1.0, 0.0]]), np.array([0]))
    assert (ties.temperature, ties.nll_after) == (0.0, math.log(2))
    wrong = fit_temperature(logits, np.array([1, 0]))
    assert (wrong.temperature, wrong.nll_after) == (math.inf, math.log(3))
    same = fit_temperature(np.ones([4, 3]), np.array([0, 1, 2, 0]))
    assert (same.temperature, same.nll_after) == (math.inf, math.log(3))


# === Bins ===


@pytest.mark.parametrize("masked", [-1e9, -1e7, -30.0])
def test_masked_classes_have_a_temperature(masked):
    rng = np.random.default_rng(0)
    logits = rng.normal(size=[200, 4])
    labels = np.array([rng.choice(3, p=row) for row in _probs(4 * logits[:, :3])])
    logits[:, 3] = masked
    found = fit_temperature(logits, labels)
    without = fit_temperature(logits[:, :3], labels)
    assert found.temperature == pytest.approx(without.temperature, rel=1e-6)
    assert found.temperature < 0.5


def _probs(logits):
    found = np.exp(logits - logits.max(axis=1, keepdims=True))
    return found / found.sum(axis=1, keepdims=True)


def test_weights_are_as_many_of_the_same():
    rng = np.random.default_rng(4)
    logits, labels = 3 * rng.normal(size=(12, 3)), rng.integers(0, 3, 12)
    times = rng.integers(0, 4, 12)
    repeated = np.repeat(np.arange(12), times)
    found = fit_temperature(logits, labels, weights=times)
    expected = fit_temperature(logits[repeated], labels[repeated])
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    probs = scipy.special.softmax(logits, axis=1)
    error = expected_calibration_error(probs, labels, bins=5, weights=times / 7)
    own = expected_calibration_error(probs[repeated], labels[repeated], bins=5)
    assert error == pytest.approx(own)
    # Those that count nothing do not keep the temperature from its end.
    right = np.where(np.arange(12) < 11, logits.argmax(axis=1), logits.argmin(axis=1))
    assert fit_temperature(logits, right).temperature > 0
    shares = np.arange(12) < 11
    assert fit_temperature(logits, right, weights=shares).temperature == 0
    for weights in (np.zeros(12), np.full(12, -1.0), np.ones(11)):
        with pytest.raises(ValueError, match="`weights` must be 12 finite numbers"):
            fit_temperature(logits, labels, weights=weights)


def test_equal_confidences_are_in_one_bin():
    correct = np.arange(100) < 80
    for order in (np.arange(100), np.random.default_rng(1).permutation(100)):
        found = reliability(np.full(100, 0.8), correct[order], bins=10, equal="mass")
        assert found.expected_error == pytest.approx(0, abs=1e-12)


def test_edges_and_equal_masses_by_hand():
    sure = np.array([0.2, 0.4, 0.4, 0.6, 1.0])
    right = np.array([0, 1, 0, 1, 1])
    left = reliability(sure, right, 5)
    np.testing.assert_array_equal(left.counts, [1, 2, 1, 1])
    # 3 times a fifth is a little more than 0.6 in binary.
    closed = reliability(sure, right, 5, edges="right")
    np.testing.assert_array_equal(closed.counts, [1, 2, 1, 1])
    np.testing.assert_allclose(closed.confidence, [0.2, 0.4, 0.6, 1.0])
    tenth = reliability(np.array([0.0, 0.1, 0.11]), np.ones(3), 10, edges="right")
    np.testing.assert_array_equal(tenth.counts, [2, 1])
    tenth = reliability(np.array([0.0, 0.1, 0.11]), np.ones(3), 10, edges="left")
    np.testing.assert_array_equal(tenth.counts, [1, 2])
    masses = reliability(sure, right, 2, equal="mass")
    np.testing.assert_array_equal(masses.counts, [3, 2])
    np.testing.assert_allclose(masses.confidence, [1 / 3, 0.8])
    np.testing.assert_allclose(masses.accuracy, [1 / 3, 1.0])
    probs = np.stack([sure, 1 - sure], axis=1)
    assert expected_calibration_error(
        np.maximum(probs, 0), np.where(right, probs.argmax(1), 1 - probs.argmax(1))
    ) == pytest.approx(
        reliability(probs.max(1), right, 15, edges="right").expected_error
    )


# === Metrics over batches ===


def test_metrics_are_those_of_all_examples():
    rng = np.random.default_rng(1)
    probs = rng.dirichlet(np.ones(4), size=60).astype("float32")
    labels = rng.integers(0, 4, 60)
    error, brier = ExpectedCalibrationError(7), BrierScore()
    for start in (0, 13, 40):
        end = {0: 13, 13: 40, 40: 60}[start]
        for metric in (error, brier):
            metric.update_state(labels[start:end], probs[start:end])
    expected = expected_calibration_error(probs, labels, bins=7)
    assert float(error.result()) == pytest.approx(expected, abs=1e-6)
    assert float(brier.result()) == pytest.approx(brier_score(probs, labels), abs=1e-6)
    # Tokens of several axes, some of which are padding.
    weights = (rng.random(60) < 0.7).astype("float32")
    kept = weights > 0
    for metric, function in (
        (error, lambda p, y: expected_calibration_error(p, y, bins=7)),
        (brier, brier_score),
    ):
        metric.reset_state()
        metric.update_state(
            labels.reshape(6, 10), probs.reshape(6, 10, 4), weights.reshape(6, 10)
        )
        expected = function(probs[kept], labels[kept])
        assert float(metric.result()) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("edges", ["right", "left"])
@pytest.mark.parametrize("bins", [1, 5, 10, 20])
def test_at_the_edges_of_bins_the_metric_is_the_function(bins, edges):
    sure = np.linspace(0.5, 1, 26).astype("float32")
    probs = np.stack([sure, 1 - sure], axis=1)
    labels = np.arange(26) % 3 % 2
    metric = ExpectedCalibrationError(bins, edges=edges)
    metric.update_state(labels, probs)
    expected = expected_calibration_error(probs, labels, bins=bins, edges=edges)
    assert float(metric.result()) == pytest.approx(expected, abs=1e-6)
    again = ExpectedCalibrationError.from_config(metric.get_config())
    assert (again.bins, again.edges) == (bins, edges)


def test_metrics_of_teachers_are_those_of_all_examples():
    rng = np.random.default_rng(2)
    teacher, student = rng.dirichlet(np.ones(4), size=(2, 60)).astype("float32")
    teacher[0] = [0, 0, 0.5, 0.5]
    labels = rng.integers(0, 4, 60)
    expected = fidelity(teacher, student)
    metrics = (Agreement(), TeacherDivergence(), NegativeLogLikelihood())
    for rows in (slice(0, 17), slice(17, 60)):
        for metric, own in zip(metrics, (teacher, teacher, labels), strict=True):
            metric.update_state(own[rows], student[rows])
    found = [float(metric.result()) for metric in metrics]
    nll = -np.log(student[np.arange(60), labels]).mean()
    assert found == pytest.approx([*expected, nll], rel=1e-5)
    metrics[1].reset_state()
    metrics[1].update_state([[0.5, 0.5]], [[1.0, 0.0]])
    assert float(metrics[1].result()) == math.inf
    error = ExpectedCalibrationError(5)
    error.update_state(labels, student)
    right = student.argmax(axis=1) == labels
    known = reliability(student.max(axis=1), right, 5, edges="right")
    for name, values in error.by_bins().items():
        np.testing.assert_allclose(values, getattr(known, name), rtol=1e-5)


# === Mistakes ===


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: expected_calibration_error(_PROBS, _LABELS[:3]),
            r"`probs` must have axes \[N K\], N >= 1, and `labels` \[N\]; found",
        ),
        (lambda: brier_score(_PROBS, _LABELS + 0.5), "`labels` must be integers"),
        (lambda: brier_score(_PROBS, _LABELS + 2), r"lie in \[0, 3\), found 2..4"),
        (lambda: fit_temperature(_LOGITS * math.inf, _OWN), "must be finite"),
        (lambda: fidelity(_PROBS, _PROBS[:2]), "fidelity: .* found"),
        (
            lambda: expected_calibration_error(_PROBS, _LABELS, edges="open"),
            "`edges` must be one of left, right; found 'open'",
        ),
        (
            lambda: expected_calibration_error(_PROBS, _LABELS, equal="area"),
            "`equal` must be one of width, mass",
        ),
        (lambda: ExpectedCalibrationError(0), "`bins` must be an integer >= 1"),
    ],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
