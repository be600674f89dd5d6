"""Contrasts with what is remembered: by hand, over steps, of other classes alone."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf import distribution
from rlm_tf.distillation import ContrastiveRepresentation, contrast
from rlm_tf.models import Distillation
from rlm_tf.objectives.feature_distillation import contrastive

_RNG = np.random.default_rng(0)
_X = _RNG.normal(size=(8, 3)).astype("float32")
_LABELS = np.array([0, 1, 2, 0, 1, 2, 2, 2])
_IDS = np.arange(8)


def _strategy(**options):
    options = {"width": 4, "negatives": 6, "temperature": 0.3, "seed": 5} | options
    return ContrastiveRepresentation(
        "hidden", "hidden", num_examples=8, labels=_LABELS, **options
    )


def _network(width, seed):
    start = keras.initializers.GlorotUniform(seed)
    return keras.Sequential(
        [
            keras.Input([3]),
            keras.layers.Dense(width, kernel_initializer=start, name="hidden"),
            keras.layers.Dense(3, kernel_initializer=start),
        ]
    )


def _unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


@pytest.mark.parametrize("products", [8, 0])
def test_two_steps_by_hand(products, monkeypatch):
    # All products with memories, or the vectors of those that are drawn.
    monkeypatch.setattr(contrast, "_PRODUCTS_A_GATHER", products)
    strategy = _strategy(momentum=0.25)
    teacher, student = _RNG.normal(size=(2, 3, 5)).astype("float32")
    strategy.build((None, 5), (None, 5))
    memories = [m.numpy() for m in (strategy.teacher_memory, strategy.student_memory)]
    assert np.abs(memories[0]).max() <= np.sqrt(3 / 4) and not np.array_equal(*memories)
    normalisers = None
    for step, ids in enumerate(([0, 1, 2], [2, 5, 3])):
        others = strategy._others(tf.constant(_LABELS[ids])).numpy()
        found = strategy.losses_of(teacher, student, labels=_LABELS[ids], ids=ids).loss
        sides = [
            _unit(np.asarray(strategy.of_student(student))),
            _unit(np.asarray(strategy.of_teacher(teacher))),
        ]
        pairs = [
            (anchors, memory[ids], memory[others])
            for anchors, memory in zip(sides, memories, strict=True)
        ]
        if normalisers is None:
            normalisers = [
                8
                * np.exp(
                    np.concatenate(
                        [
                            np.sum(a * near, 1, keepdims=True),
                            np.einsum("bd,bkd->bk", a, far),
                        ],
                        1,
                    )
                    / 0.3
                ).mean()
                for a, near, far in pairs
            ]
        expected = sum(
            contrastive(
                *pair, num_examples=8, normaliser=float(z), temperature=0.3
            ).loss
            for pair, z in zip(pairs, normalisers, strict=True)
        )
        np.testing.assert_allclose(found, expected, rtol=1e-5)
        for memory, value in zip(memories, sides[::-1], strict=True):
            memory[ids] = _unit(0.25 * memory[ids] + 0.75 * value)
        np.testing.assert_allclose(strategy.teacher_memory, memories[0], atol=1e-6)
        np.testing.assert_allclose(strategy.student_memory, memories[1], atol=1e-6)
        assert int(strategy.step) == step + 1


def test_negatives_are_all_of_other_classes_and_only_these():
    strategy = _strategy(negatives=2000)
    strategy.build((None, 5), (None, 5))
    drawn = strategy._others(tf.constant([0, 1, 2])).numpy()
    for label, examples in enumerate(drawn):
        expected = np.flatnonzero(label != _LABELS)
        found, counts = np.unique(examples, return_counts=True)
        np.testing.assert_array_equal(found, expected)
        share = 1 / len(expected)
        error = np.sqrt(share * (1 - share) / 2000)
        assert np.abs(counts / 2000 - share).max() < 5 * error


def _model(eager=True):
    model = Distillation(_network(5, 1), _network(4, 2), [(_strategy(), 0.1)])
    for seed, dense in enumerate(
        layer.layers[-1]
        for layer in (model.strategies[0].of_teacher, model.strategies[0].of_student)
    ):
        dense.kernel.assign(keras.initializers.GlorotUniform(seed)(dense.kernel.shape))
    model.compile(keras.optimizers.SGD(0.1), run_eagerly=eager)
    return model


def test_it_trains_both_projections_and_asks_for_ids():
    model = _model()
    before = [weight.numpy() for weight in model.strategies[0].trainable_variables]
    data = tf.data.Dataset.from_tensor_slices(((_X, _IDS), _LABELS)).batch(8)
    logs = model.fit(data, epochs=5, verbose=0).history
    losses = logs["contrastive_representation"]
    assert losses[-1] < losses[0]
    for found, was in zip(model.strategies[0].trainable_variables, before, strict=True):
        assert not np.array_equal(found, was)
    model.evaluate(_X, _LABELS, verbose=0)
    with pytest.raises(ValueError, match="ContrastiveRepresentation needs the ids"):
        model.fit(_X, _LABELS, verbose=0)
    for eager in (True, False):
        model.run_eagerly = eager
        model.train_function = None
        for ids, labels, message in (
            (_IDS + 1, _LABELS, r"ids must be in \[0, 8\), found 8"),
            (_IDS, _LABELS[::-1], "unlike ones must be 0, found 6"),
        ):
            data = tf.data.Dataset.from_tensors(((_X, ids), labels))
            with pytest.raises(ValueError, match=f"Representation: .*{message}"):
                model.fit(data, verbose=0)
    with pytest.raises(
        ValueError, match="`ids` must be integer ids, found dtype float"
    ):
        model.train_on_batch((_X, _IDS + 0.5), _LABELS)


@pytest.mark.landing
def test_two_replicas_equal_one():
    data = tf.data.Dataset.from_tensor_slices(((_X, _IDS), _LABELS)).batch(8)
    alone = _model(eager=False)
    with distribution.strategy("mirrored").scope():
        shared = _model(eager=False)
    for model in (alone, shared):
        model.fit(data, epochs=3, verbose=0)
    for found, expected in zip(shared.get_weights(), alone.get_weights(), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-6)
    memories = [m.strategies[0].teacher_memory for m in (shared, alone)]
    np.testing.assert_allclose(*(m.numpy() for m in memories), atol=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: _strategy(negatives=0), "`negatives` must be an integer >= 1"),
        (lambda: _strategy().set_labels([0, 1]), "`labels` must be 8 integers"),
        (lambda: _strategy().set_labels([1] * 8), "must be of several classes"),
        (
            lambda: ContrastiveRepresentation(num_examples=8).losses_of(
                None, None, labels=None, ids=None
            ),
            "no labels of all examples. A loaded strategy has none",
        ),
    ],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
