"""Distillation of features: numbers computed two ways, loops, gradients, edges."""

from __future__ import annotations

import math

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.objectives import feature_distillation as features
from tests.references.distillation_reference import ORACLE

_VECTORS, _MAPS = (ORACLE["features"][key] for key in ("vectors", "maps"))
_TEACHER, _STUDENT = (np.array(_VECTORS[key]) for key in ("teacher", "student"))
_TEACHER_MAPS = ((3.0 * np.arange(32)) % 7 - 2).reshape(2, 2, 2, 4)
_STUDENT_MAPS = (np.arange(24.0) % 5 - 1).reshape(2, 2, 2, 3)
_RNG = np.random.default_rng(0)
# Losses of two arrays, and the shapes that they take.
_OF_VECTORS = {
    "fitnet": features.fitnet,
    "activation_boundary": features.activation_boundary,
    "similarity": features.similarity,
    "correlation": features.correlation,
    "relational": features.relational,
    "probabilistic": features.probabilistic,
    "variational": lambda t, s: features.variational(t, s, tf.cast(5.0, s.dtype)),
}
_OF_MAPS = {
    "attention": features.attention,
    "factor": features.factor,
    "neuron_selectivity": features.neuron_selectivity,
    "similarity": features.similarity,
}


def _gradient(loss, student):
    with tf.GradientTape() as tape:
        x = tf.constant(student)
        tape.watch(x)
        total = tf.reduce_sum(loss(x).loss)
    return tape.gradient(total, x).numpy()


# === Numbers computed two ways ===


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("fitnet", "fitnet"),
        ("correlation", "correlation"),
        ("relational", "relational_25_50"),
        ("probabilistic", "probabilistic"),
        ("similarity", "similarity"),
        ("variational", "variational_var5"),
        ("activation_boundary", "activation_boundary_margin1"),
    ],
)
def test_losses_of_vectors_are_those_of_the_oracle(name, key):
    found = _OF_VECTORS[name](tf.constant(_TEACHER), tf.constant(_STUDENT))
    np.testing.assert_allclose(found.loss, _VECTORS[key], atol=1e-11)


@pytest.mark.parametrize("name", _OF_MAPS)
def test_losses_of_maps_are_those_of_the_oracle(name):
    found = _OF_MAPS[name](_TEACHER_MAPS, _STUDENT_MAPS).loss
    np.testing.assert_allclose(found, _MAPS[name], atol=1e-11)


def test_means_are_the_published_scalars():
    published = ORACLE["features"]["published_scalars"]
    for name, expected in (
        ("similarity", published["SP"]),
        ("correlation", published["CC"]),
        ("relational", published["RKD"]["total_25_50"]),
        ("fitnet", published["FitNet_mse"]),
        ("variational", published["VID"]["value"]),
    ):
        found = _OF_VECTORS[name](tf.constant(_TEACHER), tf.constant(_STUDENT)).loss
        assert np.mean(found) == pytest.approx(expected, rel=1e-9)
    # The authors add 1e-7 to probabilities.
    found = np.mean(features.probabilistic(_TEACHER, _STUDENT).loss)
    assert found == pytest.approx(published["PKT"], rel=1e-6)
    extra = features.relational(_TEACHER, _STUDENT).extra
    for part in ("distance", "angle"):
        found = np.mean(getattr(extra, part))
        assert found == pytest.approx(published["RKD"][part], rel=1e-9)
    single = published["AB_single"]
    pair = (np.array([single[key]]) for key in ("teacher", "student"))
    found = features.activation_boundary(*pair, margin=single["margin"]).loss
    np.testing.assert_allclose(found, [single["sum"]])


def test_contrasts_are_those_of_the_oracle():
    given = ORACLE["contrastive"]
    arrays = (np.array(given[key]) for key in ("anchors", "positives", "negatives"))
    numbers = {key: given[key] for key in ("num_examples", "normaliser", "temperature")}
    found = features.contrastive(*arrays, **numbers).loss
    np.testing.assert_allclose(found, given["loss"], atol=1e-10)


def _rotated(**changes):
    given = ORACLE["self_supervised"] | changes
    names = ("teacher", "teacher_rotated", "student", "student_rotated")
    arrays = (np.array(given[name]) for name in names)
    return features.self_supervised(
        *arrays, temperature=given["temperature"], keep=given["keep"]
    )


def test_rotated_images_are_those_of_the_oracle():
    expected = ORACLE["self_supervised"]
    loss, extra = _rotated()
    np.testing.assert_allclose(loss, expected["loss"], atol=1e-11)
    np.testing.assert_array_equal(extra.kept, expected["kept"])
    np.testing.assert_array_equal(extra.rank, expected["rank_of_own_image"])
    mean = np.sum(loss * extra.kept) / np.sum(extra.kept)
    assert mean == pytest.approx(expected["value"], abs=1e-11)
    # All or only those that the teacher has right.
    assert np.all(_rotated(keep=1.0).extra.kept == 1)
    rank = np.array(expected["rank_of_own_image"])
    np.testing.assert_array_equal(_rotated(keep=0.0).extra.kept, rank == 0)


# === Gradients ===


def _cases():
    for name, loss in _OF_VECTORS.items():
        width = 3 if name in ("similarity", "relational", "probabilistic") else 4
        yield pytest.param(loss, [5, 4], [5, width], id=name)
    for name, loss in _OF_MAPS.items():
        yield pytest.param(loss, [3, 4, 5, 2], [3, 2, 3, 4], id=f"{name}-maps")


@pytest.mark.parametrize(("loss", "of_teacher", "of_student"), _cases())
def test_gradients_are_those_of_differences_and_none_is_the_teachers(
    loss, of_teacher, of_student
):
    rng = np.random.default_rng(3)
    teacher, student = rng.normal(size=of_teacher), rng.normal(size=of_student)
    with tf.GradientTape() as tape:
        given = [tf.constant(teacher), tf.constant(student)]
        tape.watch(given)
        total = tf.reduce_sum(loss(*given).loss)
    to_teacher, to_student = tape.gradient(total, given)
    assert to_teacher is None
    step = rng.normal(size=of_student)

    def at(size):
        moved = tf.constant(student + size * step)
        return float(tf.reduce_sum(loss(tf.constant(teacher), moved).loss))

    slope = (at(1e-5) - at(-1e-5)) / 2e-5
    assert np.sum(to_student * step) == pytest.approx(slope, rel=1e-6)


def test_gradients_of_contrasts_and_rotated_images():
    anchors, positives = _RNG.normal(size=(2, 3, 4))
    negatives = _RNG.normal(size=(3, 5, 4))

    def contrast(x):
        return features.contrastive(
            x, positives, negatives, num_examples=9, normaliser=2.0, temperature=0.5
        )

    found = _gradient(contrast, anchors)
    # By hand: P / (P + K / N) is a sigmoid.
    noise = math.log(5 / 9) + math.log(2.0)
    expected = np.zeros_like(anchors)
    for i in range(3):
        right = 1 / (1 + math.exp(anchors[i] @ positives[i] / 0.5 - noise))
        expected[i] -= right * positives[i] / 0.5
        for other in negatives[i]:
            wrong = 1 / (1 + math.exp(noise - anchors[i] @ other / 0.5))
            expected[i] += wrong * other / 0.5
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    rotated = _RNG.normal(size=(3, 2, 4))
    slope = _gradient(
        lambda x: features.self_supervised(anchors, rotated, positives, x), rotated
    )
    assert np.isfinite(slope).all() and slope.any()


# === Sizes ===


def test_the_larger_map_is_averaged():
    rng = np.random.default_rng(1)
    teacher, student = rng.normal(size=[2, 4, 6, 3]), rng.normal(size=[2, 2, 3, 5])
    pooled = teacher.reshape(2, 2, 2, 3, 2, 3).mean(axis=(2, 4))
    for loss in (features.attention, features.factor, features.neuron_selectivity):
        found, back = loss(teacher, student).loss, loss(student, teacher).loss
        np.testing.assert_allclose(found, loss(pooled, student).loss)
        np.testing.assert_allclose(back, loss(student, pooled).loss)
    mean, variance = student[..., :3], np.full(3, 2.0)
    found = features.variational(teacher, mean, variance).loss
    np.testing.assert_allclose(found, features.variational(pooled, mean, variance).loss)
    # No multiple: blocks overlap.
    row = np.array([1.0, 2.0, 3.0]).reshape(1, 3, 1, 1)
    two = np.array([1.5, 2.5]).reshape(1, 2, 1, 1)
    np.testing.assert_allclose(features.attention(row, two).loss, [0], atol=1e-15)


# === Edges ===


@pytest.mark.parametrize("name", [*_OF_VECTORS, *(f"{each}-maps" for each in _OF_MAPS)])
def test_zeros_coincident_points_and_a_batch_of_one_are_finite(name):
    name, maps, _ = name.partition("-maps")
    loss = (_OF_MAPS if maps else _OF_VECTORS)[name]
    shape = [2, 2, 3] if maps else [3]
    for number in (1, 3):
        for teacher, student in (
            (np.zeros([number, *shape]), np.zeros([number, *shape])),
            (np.ones([number, *shape]), np.ones([number, *shape])),
            (np.zeros([number, *shape]), np.ones([number, *shape])),
            (np.ones([number, *shape]), -np.ones([number, *shape])),
        ):
            given = teacher.astype("float32"), student.astype("float32")
            found = loss(*map(tf.constant, given)).loss
            assert found.shape[0] == number - (name == "correlation")
            assert np.isfinite(found).all()
            slope = _gradient(lambda x, t=given[0]: loss(tf.constant(t), x), given[1])
            assert np.isfinite(slope).all()


def test_opposite_neighbours_are_finite():
    found = features.probabilistic(
        np.array([[1.0, 0.0], [1.0, 0.1]]), np.array([[1.0, 0.0], [-1.0, 0.0]])
    )
    assert np.isfinite(found.loss).all() and np.all(found.loss > 1)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
def test_dtype_is_kept(dtype):
    pair = [tf.cast(each, dtype) for each in (_TEACHER, _STUDENT)]
    for name, loss in _OF_VECTORS.items():
        found = loss(*pair)
        assert found.loss.dtype == dtype, name
        expected = loss(*(tf.cast(each, tf.float64) for each in pair)).loss
        np.testing.assert_allclose(
            tf.cast(found.loss, tf.float64), expected, rtol=2e-2, atol=1e-5
        )
    kept = _rotated().extra.kept
    assert kept.dtype == tf.float64


def test_sizes_that_only_a_running_graph_knows():
    shapes = [tf.TensorSpec([None, 3], tf.float64)] * 2
    for name, loss in _OF_VECTORS.items():
        traced = tf.function(lambda t, s, f=loss: f(t, s).loss, input_signature=shapes)
        expected = loss(tf.constant(_TEACHER), tf.constant(_STUDENT)).loss
        np.testing.assert_allclose(
            traced(_TEACHER, _STUDENT), expected, atol=1e-14, err_msg=name
        )


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: features.fitnet(_TEACHER[:, :2], _STUDENT),
            ValueError,
            r"fitnet: teacher and student must be of one shape, found \[3, 2\] and",
        ),
        (
            lambda: features.similarity(_TEACHER[:2], _STUDENT),
            ValueError,
            "similarity: teacher and student must be of one batch, found 2 and 3",
        ),
        (
            lambda: features.attention(_TEACHER[:2], _STUDENT_MAPS),
            ValueError,
            r"attention: `teacher` must have axes \[B H W C\]",
        ),
        (
            lambda: features.relational(_TEACHER.astype(int), _STUDENT),
            TypeError,
            "relational: `teacher` must be floating point, found int64",
        ),
        (
            lambda: features.probabilistic(_TEACHER[0], _STUDENT[0]),
            ValueError,
            r"`teacher` must be features \[B, ...\], found shape \[3\]",
        ),
        (lambda: _rotated(keep=1.5), ValueError, r"`keep` must lie in \[0, 1\]"),
        (lambda: _rotated(temperature=0.0), ValueError, "`temperature` must"),
    ],
)
def test_mistakes_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
