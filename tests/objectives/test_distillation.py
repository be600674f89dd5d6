"""Distillation: numbers computed two ways, loops, gradients, limits, odd logits."""

from __future__ import annotations

import math

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.objectives.distillation import (
    correctness_ranking,
    decoupled_kd,
    dist,
    generalised_jsd,
    kd,
    lumped_kd,
    reverse_kd,
    standardised_kd,
)
from tests.references.distillation_reference import ORACLE

_ORACLE = ORACLE["logits"]
_TEACHER, _STUDENT = (
    np.array(_ORACLE[f"{name}_logits"]) for name in ("teacher", "student")
)
_LABELS = np.array(_ORACLE["labels"])
_INFINITE = np.array([[1.0, -math.inf, 0.5], [-math.inf, -math.inf, 2.0]])
_FINITE = np.array([[0.2, 1.0, -0.3], [1.0, 0.0, -1.0]])
# Losses of logits alone, with settings that none leaves at their defaults.
_LOSSES = {
    "kd": lambda t, s: kd(t, s, temperature=2.0),
    "reverse_kd": lambda t, s: reverse_kd(t, s, temperature=2.0),
    "generalised_jsd": lambda t, s: generalised_jsd(t, s, beta=0.3, temperature=2.0),
    "decoupled_kd": lambda t, s: decoupled_kd(
        t, s, np.arange(len(t)) % 2, alpha=1.0, beta=2.0, temperature=2.0
    ),
    "dist": lambda t, s: dist(t, s, beta=1.0, gamma=2.0, temperature=2.0),
    "standardised_kd": lambda t, s: standardised_kd(t, s, temperature=2.0),
}


def _softmax(logits):
    e = np.exp(logits - logits.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _gradient(loss, student):
    with tf.GradientTape() as tape:
        x = tf.constant(student)
        tape.watch(x)
        total = tf.reduce_sum(loss(x))
    return tape.gradient(total, x).numpy()


# === Numbers computed two ways ===


@pytest.mark.parametrize("temperature", ["1.0", "4.0"])
def test_divergences_are_those_of_the_oracle(temperature):
    for loss, key in ((kd, "kd"), (reverse_kd, "reverse_kd")):
        found = loss(_TEACHER, _STUDENT, temperature=float(temperature)).loss
        np.testing.assert_allclose(found, _ORACLE[key][temperature], atol=1e-11)


def test_what_lies_between_is_that_of_the_oracle():
    for beta, expected in _ORACLE["generalised_jsd_T1"].items():
        found = generalised_jsd(_TEACHER, _STUDENT, beta=float(beta)).loss
        np.testing.assert_allclose(found, expected, atol=1e-11)


def test_parts_are_those_of_the_oracle():
    expected = _ORACLE["decoupled_kd"]
    loss, extra = decoupled_kd(_TEACHER, _STUDENT, _LABELS, **expected["options"])
    np.testing.assert_allclose(loss, expected["loss"], atol=1e-10)
    np.testing.assert_allclose(extra.label, expected["target_kd"], atol=1e-11)
    np.testing.assert_allclose(extra.others, expected["other_kd"], atol=1e-11)
    # The whole divergence is made of both.
    own = _softmax(_TEACHER / 4.0)[np.arange(3), _LABELS]
    np.testing.assert_allclose(
        extra.label + (1 - own) * extra.others, _ORACLE["kd"]["4.0"], atol=1e-11
    )


def test_correlations_are_those_of_the_oracle():
    expected = _ORACLE["dist"]
    loss, extra = dist(_TEACHER, _STUDENT, **expected["options"])
    assert np.mean(loss) == pytest.approx(expected["mean_loss"], abs=1e-10)
    np.testing.assert_allclose(extra.inter, expected["inter"], atol=1e-11)
    np.testing.assert_allclose(extra.intra, expected["intra"], atol=1e-11)
    # By example, what differs is its own correlation.
    np.testing.assert_allclose(
        np.diff(loss), 16 * 2 * np.diff(expected["inter"]), atol=1e-10
    )


def test_classes_that_cannot_be_do_not_count_in_standardised_logits():
    ending = np.full([len(_TEACHER), 1], -np.inf)
    widened = [np.concatenate([z, ending], axis=1) for z in (_TEACHER, _STUDENT)]
    found = standardised_kd(*widened, temperature=2.0).loss
    expected = standardised_kd(_TEACHER, _STUDENT, temperature=2.0).loss
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    student = tf.constant(widened[1])
    with tf.GradientTape() as tape:
        tape.watch(student)
        loss = standardised_kd(widened[0], student, temperature=2.0).loss
    gradient = tape.gradient(loss, student).numpy()
    assert np.isfinite(gradient).all() and not gradient[:, -1].any()


def test_standardised_logits_are_those_of_the_oracle():
    expected = _ORACLE["standardised_kd"]
    found = standardised_kd(_TEACHER, _STUDENT, temperature=expected["temperature"])
    np.testing.assert_allclose(found.loss, expected["loss"], atol=1e-11)
    # Neither scale nor height of logits matters.
    other = standardised_kd(5 * _TEACHER - 1, 0.1 * _STUDENT + 3, temperature=2.0)
    np.testing.assert_allclose(other.loss, expected["loss"], atol=1e-6)


def test_ranking_is_that_of_the_oracle():
    pairs = ORACLE["crl"]
    p, c = np.array(pairs["p"]), np.array(pairs["c"])
    for ties, key in (
        ("thesis", "thesis_pair_losses"),
        ("authors", "code_pair_losses_tie_zero"),
    ):
        found = correctness_ranking(p, c, ties=ties).loss
        np.testing.assert_allclose(found, pairs[key], atol=1e-12)


# === Gradients and limits ===


def test_gradient_is_the_difference_of_probabilities():
    found = _gradient(lambda x: kd(_TEACHER, x, temperature=4.0).loss / 3, _STUDENT)
    expected = _ORACLE["kd_gradient_of_mean_T4"]
    np.testing.assert_allclose(found, expected, atol=1e-10)
    difference = _softmax(_STUDENT / 4) - _softmax(_TEACHER / 4)
    np.testing.assert_allclose(3 * found, 4 * difference, atol=1e-12)


@pytest.mark.parametrize("name", _LOSSES)
def test_gradients_are_those_of_differences_and_none_is_the_teachers(name):
    loss = _LOSSES[name]
    with tf.GradientTape() as tape:
        teacher, student = tf.constant(_TEACHER), tf.constant(_STUDENT)
        tape.watch([teacher, student])
        total = tf.reduce_sum(loss(teacher, student).loss)
    to_teacher, to_student = tape.gradient(total, [teacher, student])
    assert to_teacher is None
    step = np.random.default_rng(0).normal(size=_STUDENT.shape)

    def at(size):
        return float(tf.reduce_sum(loss(_TEACHER, _STUDENT + size * step).loss))

    slope = (at(1e-5) - at(-1e-5)) / 2e-5
    assert np.sum(to_student * step) == pytest.approx(slope, rel=1e-7)


def test_large_temperatures_compare_centred_logits():
    found = kd(_TEACHER, _STUDENT, temperature=1e4).loss
    centred = [z - z.mean(-1, keepdims=True) for z in (_TEACHER, _STUDENT)]
    expected = 0.5 * np.mean((centred[0] - centred[1]) ** 2, axis=-1)
    np.testing.assert_allclose(found, expected, rtol=1e-3)
    assert np.mean(expected) == pytest.approx(_ORACLE["large_T_limit_of_mean"])
    # In single precision, too: no terms of both signs that cancel.
    single = [tf.constant(x, tf.float32) for x in (_TEACHER, _STUDENT)]
    for temperature in (1e3, 1e4):
        exact = kd(_TEACHER, _STUDENT, temperature=temperature).loss.numpy()
        near = kd(*single, temperature=temperature).loss.numpy()
        np.testing.assert_allclose(near, exact, rtol=2e-3)


def test_single_precision_is_exact_near_the_ends_of_jsd():
    single = [tf.constant(x, tf.float32) for x in (_TEACHER, _STUDENT)]
    exact = kd(_TEACHER, _STUDENT, temperature=1.0).loss.numpy()
    found = generalised_jsd(*single, beta=1e-6).loss.numpy() / 1e-6
    np.testing.assert_allclose(found, exact, rtol=1e-3)


def test_what_lies_between_tends_to_both_ends():
    near = 1e-7
    low = generalised_jsd(_TEACHER, _STUDENT, beta=near).loss / near
    np.testing.assert_allclose(low, _ORACLE["kd"]["1.0"], rtol=1e-5)
    high = generalised_jsd(_TEACHER, _STUDENT, beta=1 - near).loss / near
    np.testing.assert_allclose(high, _ORACLE["reverse_kd"]["1.0"], rtol=1e-5)


# === A lump of the rest ===


@pytest.mark.parametrize("temperature", [1.0, 3.0])
def test_a_lump_bounds_the_divergence_and_is_exact_with_all_classes(temperature):
    rng = np.random.default_rng(1)
    teacher, student = rng.normal(size=(2, 5, 2, 7)) * 2
    log_p = np.log(_softmax(teacher / temperature))
    whole = kd(teacher, student, temperature=temperature).loss
    last = np.full([5, 2], -1.0)
    for k in (1, 3, 6, 7):
        ids = np.argsort(-teacher, axis=-1)[..., :k]
        top = np.take_along_axis(log_p, ids, -1)
        found = lumped_kd(ids, top, student, temperature=temperature)
        assert np.all(found.loss <= whole + 1e-12)
        # Finer partitions lose less.
        assert np.all(found.loss >= last - 1e-12)
        last = found.loss.numpy()
        q = np.take_along_axis(_softmax(student / temperature), ids, -1)
        np.testing.assert_allclose(found.extra.rest, 1 - q.sum(-1), atol=1e-12)
        p, rest = np.exp(top), 1 - np.exp(top).sum(-1)
        expected = (p * np.log(p / q)).sum(-1)
        if k < 7:
            expected += rest * np.log(rest / (1 - q.sum(-1)))
        np.testing.assert_allclose(found.loss, temperature**2 * expected, atol=1e-9)
    np.testing.assert_allclose(last, whole, atol=1e-9)
    # In single precision what is left of 1 is rounding.
    single = lumped_kd(ids, top.astype("float32"), student.astype("float32"))
    assert single.loss.dtype == tf.float32 and np.isfinite(single.loss).all()


@pytest.mark.parametrize("k", [64, 2000])
@pytest.mark.parametrize("temperature", [1.0, 10.0, 100.0])
def test_a_lump_of_many_classes_does_not_cancel_in_single_precision(k, temperature):
    rng = np.random.default_rng(3)
    teacher = rng.normal(size=[4, 2000])
    student = teacher + 0.01 * rng.normal(size=[4, 2000])
    ids = np.argsort(-teacher, axis=-1)[:, :k]
    top = np.log(np.take_along_axis(_softmax(teacher / temperature), ids, -1))

    def found(dtype):
        log_p, logits = tf.constant(top, dtype), tf.constant(student, dtype)
        with tf.GradientTape() as tape:
            tape.watch(logits)
            loss = lumped_kd(ids, log_p, logits, temperature=temperature).loss
        return loss, tape.gradient(loss, logits)

    for single, double in zip(found(tf.float32), found(tf.float64), strict=True):
        assert single.dtype == tf.float32
        largest = np.abs(double).max()
        np.testing.assert_allclose(single, double, rtol=0.01, atol=0.01 * largest)


# === Odd logits ===


@pytest.mark.parametrize("name", _LOSSES)
def test_huge_logits_are_finite(name):
    teacher = np.array([[1e4, 0.0, -1e4], [-1e4, 1e4, 0.0]])
    student = np.array([[-1e4, 1e4, 0.0], [0.0, -1e4, 1e4]])
    for pair in ((teacher, student), (teacher, teacher), (0 * teacher, student)):
        given = [each.astype("float32") for each in pair]
        found = _LOSSES[name](*given).loss
        assert found.dtype == tf.float32 and np.isfinite(found).all()
        slope = _gradient(lambda x, g=given: _LOSSES[name](g[0], x).loss, given[1])
        assert np.isfinite(slope).all()
    if name != "dist":  # Classes that nobody varies in are not correlated.
        same = _LOSSES[name](teacher, teacher).loss
        np.testing.assert_allclose(same, np.zeros(2), atol=1e-6)


def test_impossible_classes_of_a_teacher():
    for name in ("kd", "generalised_jsd", "decoupled_kd", "dist"):
        loss = _LOSSES[name]
        found = loss(_INFINITE, _FINITE).loss
        # As ones whose probability is 0 in any precision.
        near = loss(np.maximum(_INFINITE, -1e5), _FINITE).loss
        np.testing.assert_allclose(found, near, rtol=1e-9)
        slope = _gradient(lambda x, f=loss: f(_INFINITE, x).loss, _FINITE)
        assert np.isfinite(slope).all()
        # A class that both lack is no matter.
        if name != "dist":
            both = loss(_INFINITE, _INFINITE).loss
            np.testing.assert_allclose(both, np.zeros(2), atol=1e-12)
        slope = _gradient(lambda x, f=loss: f(_INFINITE, x).loss, _INFINITE)
        assert np.isfinite(slope).all()
    assert (_LOSSES["reverse_kd"](_INFINITE, _FINITE).loss.numpy() == math.inf).all()


@pytest.mark.parametrize("temperature", [1.0, 2.0, 4.0])
def test_correlations_do_not_depend_on_how_small_probabilities_are(temperature):
    logits = np.random.default_rng(3).normal(size=[4, 5]).astype(np.float32)
    for depth in (10, 45, 60):
        logits[:, 4] = logits[:, 3] - depth
        found = dist(logits, logits, beta=1.0, gamma=1.0, temperature=temperature)
        np.testing.assert_allclose(found.loss, np.zeros(4), atol=2e-5)


def test_a_batch_of_one_and_logits_that_do_not_vary():
    for student in (_STUDENT[:1], np.zeros([1, 4])):
        for name in ("dist", "standardised_kd"):
            found = _LOSSES[name](_TEACHER[:1], student).loss
            assert np.isfinite(found).all()
            slope = _gradient(
                lambda x, f=_LOSSES[name]: f(_TEACHER[:1], x).loss, student
            )
            assert np.isfinite(slope).all()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
@pytest.mark.parametrize("name", _LOSSES)
def test_dtype_is_kept_and_more_axes_are_free(name, dtype):
    pair = [tf.cast(each, dtype) for each in (_TEACHER, _STUDENT)]
    found = _LOSSES[name](*pair)
    assert found.loss.dtype == dtype
    wide = _LOSSES[name](*(tf.cast(each, tf.float64) for each in pair)).loss
    np.testing.assert_allclose(tf.cast(found.loss, tf.float64), wide, rtol=1e-2)
    for part in found.extra:
        assert part.dtype == dtype
    if name in ("kd", "reverse_kd", "generalised_jsd", "standardised_kd"):
        nested = [each[:, tf.newaxis] for each in pair]
        np.testing.assert_array_equal(_LOSSES[name](*nested).loss[:, 0], found.loss)
        assert found.extra.agreement.numpy().tolist() == [1, 1, 1]


# === Mistakes ===


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: kd(_TEACHER, _STUDENT, temperature=0.0),
            ValueError,
            "kd: `temperature` must be finite and positive, found 0.0",
        ),
        (
            lambda: kd(_TEACHER[:, :2], _STUDENT, temperature=1.0),
            ValueError,
            "kd: axis K of `student_logits` is 4, expected 2",
        ),
        (
            lambda: kd(_LABELS, _STUDENT, temperature=1.0),
            TypeError,
            "kd: `teacher_logits` must be floating point, found int64",
        ),
        (
            lambda: generalised_jsd(_TEACHER, _STUDENT, beta=1.0),
            ValueError,
            r"`beta` must lie in \(0, 1\), found 1.0; its ends",
        ),
        (
            lambda: decoupled_kd(
                _TEACHER[:, :1],
                _STUDENT[:, :1],
                _LABELS,
                alpha=1.0,
                beta=1.0,
                temperature=1.0,
            ),
            ValueError,
            "at least two classes, found 1",
        ),
        (
            lambda: correctness_ranking(np.ones(2), np.ones(2), ties="none"),
            ValueError,
            "`ties` must be one of thesis, authors; found 'none'",
        ),
        (
            lambda: lumped_kd(_LABELS[:2], np.zeros([3]), _STUDENT),
            ValueError,
            "lumped_kd: ",
        ),
    ],
)
def test_mistakes_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
