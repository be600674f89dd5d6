"""Anchors of a teacher, and the student that follows them, also when it is resumed."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from rlm_tf.distillation import KD
from rlm_tf.models import Distillation
from rlm_tf.training import SaveAnchors, TeacherSchedule

_X = np.random.default_rng(0).normal(size=(8, 3)).astype("float32")
_LABELS = np.arange(8) % 2


def _classifier(seed):
    keras.utils.set_random_seed(seed)
    model = keras.Sequential([keras.Input([3]), keras.layers.Dense(2)])
    model.compile(
        keras.optimizers.SGD(0.5),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    return model


def test_a_student_has_each_anchor_for_equally_many_epochs(tmp_path):
    teacher, seen = _classifier(1), {}
    keep = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: seen.update({epoch: teacher.get_weights()})
    )
    anchors = SaveAnchors(tmp_path / "anchors", 2)
    teacher.fit(_X, _LABELS, epochs=5, verbose=0, callbacks=[keep, anchors])
    names = sorted(path.name for path in (tmp_path / "anchors").iterdir())
    assert names == [f"anchor-{n:04d}.weights.h5" for n in (2, 4, 5)]
    for initial in (0, 4):
        model = Distillation(teacher, _classifier(2), KD())
        model.compile(keras.optimizers.SGD(0.1))
        used = []
        callbacks = [
            TeacherSchedule(teacher, tmp_path / "anchors", 6),
            keras.callbacks.LambdaCallback(
                on_epoch_end=lambda epoch, logs, used=used: used.append(
                    teacher.get_weights()
                )
            ),
        ]
        options = {"epochs": 6, "initial_epoch": initial, "callbacks": callbacks}
        model.fit(_X, _LABELS, verbose=0, **options)
        expected = [seen[epoch] for epoch in (1, 1, 3, 3, 4, 4)][initial:]
        for found, wanted in zip(used, expected, strict=True):
            for one, other in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(one, other)


def test_mistakes(tmp_path):
    with pytest.raises(ValueError, match=r"has no anchor-\*\.weights\.h5"):
        TeacherSchedule(_classifier(1), tmp_path, 3)
    with pytest.raises(ValueError, match=r"between 1 and as many as epochs, 1"):
        TeacherSchedule(_classifier(1), ["a", "b"], 1)
    with pytest.raises(ValueError, match="`every` must be"):
        SaveAnchors(tmp_path, 0)
