"""`distil`: which teachers and students it takes, and whose a folder is."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from rlm_tf.commands.distil import distil
from rlm_tf.commands.distillation import training
from rlm_tf.commands.distillation.classifiers import PREPARED
from rlm_tf.data import ImageBatches, digits
from rlm_tf.distillation import KD, FactorTransfer, ReverseKD
from rlm_tf.models import (
    CrossFittedTeacher,
    Distillation,
    LanguageDistillation,
    StudentOrientedTeacher,
)
from rlm_tf.restricted import KneserNey
from tests.models.imm import imm_fixtures as fixtures

_RNG = np.random.default_rng(0)
_X = _RNG.normal(size=(12, 4)).astype("float32")
_Y = (_X[:, 0] > 0).astype(int) + (_X[:, 1] > 0)
_DATA = (_X, _Y)
_WORDS = fixtures.stream(240)


def _classifier(width, seed, **last):
    keras.utils.set_random_seed(seed)
    layers = [keras.layers.Dense(width, "relu"), keras.layers.Dense(3, **last)]
    return keras.Sequential([keras.Input([4]), *layers])


def _distilled(teacher, student, data=_DATA, **options):
    options = {"epochs": 1, "batch_size": 6, "verbose": 0, **options}
    return distil(teacher, student, data, valid=data, **options)


@keras.saving.register_keras_serializable("rlm_tf_tests")
class Subclassed(keras.Model):
    """Of two inputs, which it does not say; the rate of dropout is of no seed."""

    def __init__(self, rate=0.5, **kwargs):
        super().__init__(**kwargs)
        self.rate = rate
        self.hidden = keras.layers.Dense(2, "relu")
        self.dropout = keras.layers.Dropout(rate)
        self.last = keras.layers.Dense(3)

    def call(self, inputs, training=False):
        x = keras.ops.concatenate(list(inputs), axis=-1)
        return self.last(self.dropout(self.hidden(x), training=training))

    def get_config(self):
        return {**super().get_config(), "rate": self.rate}


class Unregistered(Subclassed):
    pass


# === Classifiers ===


def test_a_subclassed_student_of_two_inputs():
    inputs = (_X[:, :2], _X[:, 2:])
    own = [keras.Input([2], name=name) for name in ("a", "b")]
    hidden = keras.layers.Dense(3)(keras.layers.Concatenate()(own))
    teacher = keras.Model(own, hidden)
    student = Subclassed()
    student(inputs)
    found = _distilled(teacher, student, (inputs, _Y), epochs=2)
    assert type(found.student) is Subclassed and found.student is not student
    assert found.rows[0].parameters == 4 * 3 + 3
    other = Unregistered()
    other(inputs)
    with pytest.raises(
        ValueError, match=r"Unregistered 'unregistered.* cannot be copied"
    ):
        _distilled(teacher, other, (inputs, _Y))


def test_both_copies_draw_alike():
    student = Subclassed()
    student((_X[:, :2], _X[:, 2:]))
    inputs = (_X[:, :2], _X[:, 2:])
    first, second = (training.copy_of(student, 3, inputs) for _ in range(2))
    np.testing.assert_array_equal(
        first(inputs, training=True), second(inputs, training=True)
    )


def test_students_and_teachers_in_what_trained_them():
    teacher, student = _classifier(6, 1), _classifier(2, 2)
    wrapped = _distilled(
        StudentOrientedTeacher(teacher, lipschitz=0.0, consistency=0.0, epochs=1),
        Distillation(teacher, student, KD(2.0)),
    )
    plain = _distilled(teacher, student)
    assert type(wrapped.student) is keras.Sequential
    assert wrapped.rows[2].nll == plain.rows[2].nll


def test_probabilities_are_refused_before_anything_is_trained(capsys):
    teacher = _classifier(6, 1, activation="softmax")
    with pytest.raises(Exception, match="must be logits, not probabilities"):
        _distilled(teacher, _classifier(2, 2), verbose=1)
    assert "student alone" not in capsys.readouterr().out


def test_mistakes_name_whose_they_are_before_anything_is_trained(capsys):
    fine, student = _classifier(5, 1), _classifier(2, 2)
    lost = _classifier(5, 3)
    lost.weights[0].assign(np.full(lost.weights[0].shape, np.nan))
    two = keras.Sequential([keras.Input([4]), keras.layers.Dense(2)])
    wide = keras.Sequential([keras.Input([5]), keras.layers.Dense(3)])
    sure = _classifier(2, 4, activation="softmax")
    for teacher, own, data, message in (
        ([fine, lost], student, _DATA, "distil: teacher 2 of 2: the teacher .* finite"),
        ([fine, two], student, _DATA, "teacher 2 of 2, .* there are 2 classes, and te"),
        (wide, student, _DATA, r"the teacher, .* examples of shape \[5\], found \[4\]"),
        (fine, wide, _DATA, r"the student, .* examples of shape \[5\], found \[4\]"),
        (fine, two, _DATA, "the student, .* expected logits of the teacher's 3 cl"),
        (fine, sure, _DATA, "the student, .* must be logits, not probabilities"),
        (fine, student, (_X, _Y + 1), r"labels of `train` must lie in \[0, 3\).* 3"),
    ):
        with pytest.raises(ValueError, match=message):
            _distilled(teacher, own, data, verbose=1)
    with pytest.raises(ValueError, match="may be a share of the widths of this"):
        distil(fine, 0.5, _WORDS, valid=_WORDS, epochs=1)
    assert not capsys.readouterr().out


def test_cross_fitted_teachers_know_what_they_did_not_see():
    models = [_classifier(6, seed) for seed in (1, 2)]
    teacher = CrossFittedTeacher(models, np.arange(12) % 2)
    found = _distilled(teacher, _classifier(2, 3))
    assert found.rows[0].parameters == 2 * models[0].count_params()
    # On data that nobody was trained on all speak.
    both = _distilled(models, _classifier(2, 3))
    assert found.rows[0].nll == pytest.approx(both.rows[0].nll, rel=1e-6)


@pytest.mark.landing
def test_what_was_prepared_is_prepared_once(tmp_path, monkeypatch):
    batches = ImageBatches(digits().part(range(8)), 4, seed=1)
    images, labels = digits().images[:8] / np.float32(255), digits().labels[:8]

    def network(channels, seed):
        keras.utils.set_random_seed(seed)
        inputs = keras.Input([8, 8, 1])
        x = keras.layers.Conv2D(channels, 3, name="maps")(inputs)
        pooled = keras.layers.GlobalAveragePooling2D()(x)
        return keras.Model(inputs, keras.layers.Dense(10)(pooled))

    def run(**options):
        strategy = FactorTransfer("maps", "maps")
        strategy.preparing_epochs = 1
        keras.utils.set_random_seed(5)
        found = distil(
            network(4, 1),
            network(2, 2),
            batches,
            valid=(images, labels),
            losses=strategy,
            folder=tmp_path,
            verbose=0,
            **options,
        )
        return strategy, found

    first, _ = run(epochs=1)
    assert (tmp_path / PREPARED).exists()
    monkeypatch.setattr(Distillation, "prepare", None)
    second, found = run(epochs=2)
    assert second.is_prepared and len(found.rows) == 3
    for own, other in zip(
        first.teacher_part.get_weights(),
        second.teacher_part.get_weights(),
        strict=True,
    ):
        np.testing.assert_array_equal(own, other)


def test_a_folder_is_of_its_models_data_and_settings(tmp_path):
    teacher, student = _classifier(6, 1), _classifier(2, 2)
    _distilled(teacher, student, folder=tmp_path)
    _distilled(teacher, student, folder=tmp_path, epochs=2)
    for options, message in (
        ({"teacher": _classifier(6, 3)}, "teachers_sha256 was"),
        ({"student": _classifier(2, 3)}, "student_sha256 was"),
        ({"data": (_X, 2 - _Y)}, "train_sha256 was"),
        ({"losses": KD(2.0)}, "losses was"),
        ({"losses": [(KD(4.0), 0.25)]}, r"losses was .*0\.5.* is .*0\.25"),
        ({"student_weight": 0.25}, "student_weight was 0.5 and is 0.25"),
        ({"optimizer": keras.optimizers.SGD(0.1)}, "optimizer was"),
        ({"batch_size": 5}, "batch_size was 6 and is 5"),
        ({"seed": 3}, "seed was 0 and is 3"),
    ):
        given = {"teacher": teacher, "student": student, **options}
        with pytest.raises(ValueError, match=message):
            _distilled(**given, folder=tmp_path)


# === Language models ===


def _spoken(teacher, student, **options):
    given = {"epochs": 1, "batch_size": 4, "window": 10, "verbose": 0, **options}
    return distil(teacher, student, _WORDS[:160], valid=_WORDS[160:], **given)


@pytest.mark.landing
def test_a_student_that_is_a_plain_keras_model():
    keras.utils.set_random_seed(1)
    inputs = keras.Input([None], dtype="int32")
    hidden = keras.layers.Embedding(7, 4)(inputs)
    student = keras.Model(inputs, keras.layers.Dense(7)(hidden))
    found = _spoken(fixtures.language_model(), student, epochs=2)
    assert type(found.alone) is type(student) is type(found.student)
    moved = [
        np.abs(np.subtract(own, old)).max()
        for each in (found.alone, found.student)
        for own, old in zip(each.get_weights(), student.get_weights(), strict=True)
    ]
    assert min(moved) > 0


def test_a_folder_of_language_models(tmp_path):
    teacher, student = fixtures.language_model(seed=1), fixtures.language_model(seed=2)
    _spoken(teacher, student, folder=tmp_path)
    wrapped = LanguageDistillation(None, student, KD(1.0))
    _spoken(teacher, wrapped, folder=tmp_path)
    for options, message in (
        ({"window": 8}, "window was 10 and is 8"),
        ({"losses": ReverseKD(1.0)}, "losses was"),
    ):
        with pytest.raises(ValueError, match=message):
            _spoken(teacher, student, folder=tmp_path, **options)
    with pytest.raises(ValueError, match="teachers_sha256 was"):
        _spoken(student, student, folder=tmp_path)


def test_texts_of_other_words_and_teachers_that_are_no_models():
    model = fixtures.language_model()
    words = np.array([0, 1, 7], np.int32)
    with pytest.raises(ValueError, match="knows 7 words, 0 to 6, and the text has tok"):
        distil(model, model, words, valid=words, epochs=1, verbose=0)
    with pytest.raises(ValueError, match="must be a Keras model, found KneserNey"):
        _spoken(KneserNey(2).fit(_WORDS, 7), model)
