"""Cross-fitted teachers: each example by the model that did not see it."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf import distillation as strategies
from rlm_tf.models import CrossFittedTeacher, Distillation, folds_of
from rlm_tf.objectives import distillation as outputs

_X = np.random.default_rng(0).normal(size=(6, 3)).astype("float32")
_FOLDS = [0, 2, 1, 0, 2, 1]


def _classifier(seed):
    keras.utils.set_random_seed(seed)
    return keras.Sequential([keras.Input([3]), keras.layers.Dense(2)])


def test_each_example_is_of_its_folds_model():
    models = [_classifier(seed) for seed in (1, 2, 3)]
    teacher = CrossFittedTeacher(models, _FOLDS)
    ids = np.array([4, 0, 2, 5])
    found = teacher((_X[ids], ids))
    for row, own in zip(found, ids, strict=True):
        expected = tf.nn.log_softmax(models[_FOLDS[own]](_X[own : own + 1]))[0]
        np.testing.assert_allclose(row, expected, atol=1e-6)
    mean = np.mean([tf.nn.softmax(model(_X)) for model in models], axis=0)
    np.testing.assert_allclose(np.exp(teacher(_X)), mean, atol=1e-6)
    student = _classifier(4)
    model = Distillation(teacher, student, strategies.KD(2.0))
    terms = model.objective_terms((_X[ids], ids), ids % 2, None, training=True)
    loss = outputs.kd(found, student(_X[ids]), temperature=2.0).loss
    np.testing.assert_allclose(terms["kd"].loss, loss, atol=1e-6)
    model.compile(keras.optimizers.SGD(0.1))
    before = [weight.numpy() for weight in teacher.weights]
    data = tf.data.Dataset.from_tensors(((_X, np.arange(6)), np.arange(6) % 2))
    model.fit(data, epochs=2, verbose=0)
    for weight, was in zip(teacher.weights, before, strict=True):
        np.testing.assert_array_equal(weight, was)


def test_folds_are_of_one_size_and_repeatable():
    found = folds_of(11, 3, seed=4)
    assert sorted(np.bincount(found)) == [3, 4, 4]
    np.testing.assert_array_equal(found, folds_of(11, 3, seed=4))
    assert not np.array_equal(found, folds_of(11, 3, seed=5))


def test_mistakes():
    with pytest.raises(ValueError, match=r"`folds` must be integers \[N\] in \[0, 1\)"):
        CrossFittedTeacher([_classifier(1)], [0, 1])
    models = [_classifier(seed) for seed in (1, 2, 3)]
    teacher = CrossFittedTeacher(models, _FOLDS)
    for ids in ([6], [-1]):
        with pytest.raises(ValueError, match=r"ids must be in \[0, 6\)"):
            teacher((_X[:1], np.array(ids)))
    # Without ids it would say what its models have seen.
    model = Distillation(teacher, _classifier(4), strategies.KD(2.0))
    model.compile("sgd", run_eagerly=True)
    with pytest.raises(ValueError, match="CrossFittedTeacher needs the ids of ex"):
        model.fit(_X, np.arange(6) % 2, verbose=0)
