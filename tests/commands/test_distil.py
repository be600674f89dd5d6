"""`distil`, function and command: tables by hand, exports, smaller models, mistakes."""

from __future__ import annotations

import dataclasses
import json

import keras
import numpy as np
import pytest
import scipy.special
import tensorflow as tf

from rlm_tf import load_model
from rlm_tf.commands.distil import distil
from rlm_tf.commands.distillation import running
from rlm_tf.commands.distillation.settings import (
    DistilSettings,
    check_distil_settings,
)
from rlm_tf.commands.model_folder import VOCABULARY
from rlm_tf.commands.settings import TrainSettings
from rlm_tf.commands.training import reading
from rlm_tf.data import Corpus, Vocabulary
from rlm_tf.distillation import SelfSupervised
from rlm_tf.evaluation import expected_calibration_error, token_fidelity
from rlm_tf.layers import LSTMCell
from rlm_tf.models import (
    AWDLanguageModel,
    EnsembleLanguageModel,
    RegularizedLanguageModel,
    TransformerLanguageModel,
)
from rlm_tf.models.distillation.shrunk import shrunk
from tests.models.imm import imm_fixtures as fixtures

_RNG = np.random.default_rng(0)
_X = _RNG.normal(size=(60, 4)).astype("float32")
_Y = (_X[:, 0] + _X[:, 1] > 0).astype(int) + (_X[:, 2] > 1)
_TRAIN, _VALID, _TEST = (
    (_X[s], _Y[s]) for s in (slice(30), slice(30, 45), slice(45, 60))
)


def _classifier(width, seed):
    keras.utils.set_random_seed(seed)
    return keras.Sequential(
        [keras.Input([4]), keras.layers.Dense(width, "relu"), keras.layers.Dense(3)]
    )


def _teacher():
    model = _classifier(16, 1)
    model.compile(
        keras.optimizers.Adam(0.03),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    model.fit(_X, _Y, epochs=20, verbose=0)
    return model


# === Classifiers ===


def test_a_classifier_its_table_and_its_export(tmp_path):
    teacher, student = _teacher(), _classifier(3, 2)
    before = student.get_weights()
    found = distil(
        [teacher, _classifier(5, 3)],
        student,
        _TRAIN,
        valid=_VALID,
        test=_TEST,
        epochs=3,
        optimizer=keras.optimizers.Adam(0.02),
        export=tmp_path / "served",
        temperature=2.0,
        folder=tmp_path / "run",
        batch_size=10,
        verbose=0,
    )
    for old, weight in zip(before, student.get_weights(), strict=True):
        np.testing.assert_array_equal(old, weight)
    assert [row.name for row in found.rows] == ["teacher", "student alone", "student"]
    logits = np.asarray(found.student(_TEST[0]), float)
    probs = scipy.special.softmax(logits, axis=1)
    row = found.rows[2]
    assert row.parameters == 4 * 3 + 3 + 3 * 3 + 3
    assert row.megabytes == pytest.approx(4e-6 * row.parameters)
    assert row.score == pytest.approx(np.mean(probs.argmax(1) == _TEST[1]))
    nll = -np.log(probs[np.arange(15), _TEST[1]]).mean()
    assert row.nll == pytest.approx(nll, rel=1e-5)
    error = expected_calibration_error(probs, _TEST[1])
    assert row.calibration == pytest.approx(error, abs=1e-5)
    assert found.rows[0].fidelity is None and 0 <= row.fidelity <= 1
    assert found.rows[0].parameters == sum(
        each.count_params() for each in (teacher, _classifier(5, 3))
    )
    assert "| student alone |" in found.table() and "accuracy" in found.table()
    served = tf.saved_model.load(str(tmp_path / "served")).signatures["classify"]
    answer = served(examples=tf.constant(_TEST[0]))["probabilities"]
    expected = scipy.special.softmax(logits / 2, axis=1)
    np.testing.assert_allclose(answer, expected, atol=1e-5)
    # Checkpoints of both are there, so the same again trains nothing.
    again = distil(
        [teacher, _classifier(5, 3)],
        student,
        _TRAIN,
        valid=_VALID,
        test=_TEST,
        epochs=3,
        optimizer=keras.optimizers.Adam(0.02),
        folder=tmp_path / "run",
        batch_size=10,
        verbose=0,
    )
    assert again.rows[2].nll == pytest.approx(row.nll)


@pytest.mark.landing
def test_strategies_that_need_preparation_are_prepared():
    keras.utils.set_random_seed(0)
    images = _RNG.normal(size=(8, 4, 4, 1)).astype("float32")
    labels = np.arange(8) % 3

    def network(width):
        inputs = keras.Input([4, 4, 1])
        x = keras.layers.Dense(width, "relu", name="pooled")(
            keras.layers.Flatten()(inputs)
        )
        return keras.Model(inputs, keras.layers.Dense(3)(x))

    losses = [(SelfSupervised("pooled", "pooled"), 1.0)]
    losses[0][0].preparing_epochs = 1
    found = distil(
        network(4),
        network(2),
        (images, labels),
        valid=(images, labels),
        losses=losses,
        epochs=1,
        verbose=0,
    )
    assert losses[0][0].is_prepared and len(found.rows) == 3


# === Language models ===


@pytest.mark.landing
def test_a_language_model_its_table_and_its_export(tmp_path, capsys):
    words = fixtures.stream(300)
    vocabulary = Vocabulary(["<eos>", *"abcdef"], rule="whitespace")
    teachers = [fixtures.language_model(seed=8), fixtures.language_model(seed=9)]
    found = distil(
        teachers,
        0.5,
        words[:200],
        valid=words[200:250],
        test=words[250:],
        epochs=2,
        vocabulary=vocabulary,
        export=tmp_path / "served",
        folder=tmp_path / "run",
        batch_size=4,
        window=10,
    )
    shown = capsys.readouterr().out
    assert "student alone: epoch 2 of 2, val_nll" in shown
    assert (tmp_path / "run" / "predictions" / "words.npy").exists()
    assert found.student.width == 4 and found.title == "perplexity"
    (expected,) = token_fidelity(teachers, found.student, words[250:], prefix=0)
    row = found.rows[2]
    assert row.nll == pytest.approx(expected.student_nll)
    assert row.score == pytest.approx(np.exp(row.nll))
    assert row.fidelity == expected.agreement
    assert found.rows[0].nll == pytest.approx(expected.teacher_nll)
    served = tf.saved_model.load(str(tmp_path / "served"))
    answer = served.signatures["score"](texts=tf.constant(["a b c", ""]))
    assert np.isfinite(answer["total"]).all()


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (lambda: fixtures.language_model(), {"width": 4}),
        (
            lambda: TransformerLanguageModel(7, 24, 1, 2, 8),
            {"width": 12, "num_heads": 2, "num_layers": 1},
        ),
        (
            lambda: AWDLanguageModel(
                7, units=[9, 6], embedding_width=6, mixture_components=1
            ),
            {"units": (4, 3), "embedding_width": 3},
        ),
        (
            lambda: EnsembleLanguageModel([fixtures.language_model()] * 2),
            {"width": 4},
        ),
    ],
)
def test_smaller_models_of_the_same_kind(model, expected):
    found = shrunk(model(), 0.5)
    for name, value in expected.items():
        assert getattr(found, name) == value


def test_cells_are_shrunk_too():
    cell = LSTMCell(10, cap_input_gate=True, state_dropout=0.3)
    model = RegularizedLanguageModel(7, cell, 2, layer_dropout=0.1, jit_loop=False)
    found = shrunk(model, 0.3)
    assert found.cell.units == 3 and found.cell.state_dropout == 0.3
    assert found.num_layers == 2 and found.layer_dropout == 0.1


# === The command ===


@pytest.fixture(name="settings")
def _settings(tmp_path):
    _teacher().save(tmp_path / "a.keras")
    _classifier(2, 5).save(tmp_path / "s.keras")
    np.savez(tmp_path / "xy.npz", x=_X, y=_Y)
    return DistilSettings(
        teacher=(str(tmp_path / "a.keras"),),
        student=str(tmp_path / "s.keras"),
        arrays=str(tmp_path / "xy.npz"),
        export=str(tmp_path / "served"),
        output_dir=str(tmp_path / "run"),
        epochs=1,
    )


def test_the_command(settings, tmp_path, capsys):
    check_distil_settings(settings)
    running.run(settings)
    shown = capsys.readouterr().out
    assert "| teacher" in shown and "served: " in shown
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    assert [row["name"] for row in results["rows"]][2] == "student"
    student = load_model(tmp_path / "run" / "student.keras")
    assert student.count_params() == 4 * 2 + 2 + 2 * 3 + 3
    running.run(settings)
    assert "done before" in capsys.readouterr().out
    with pytest.raises(ValueError, match="epochs was 1 and is 2"):
        running.run(dataclasses.replace(settings, epochs=2))
    with pytest.raises(ValueError, match=r"lacks y_valid"):
        np.savez(tmp_path / "few.npz", x_train=_X, y_train=_Y, x_valid=_X, extra=_X)
        few = dataclasses.replace(settings, arrays=str(tmp_path / "few.npz"))
        running.run(dataclasses.replace(few, output_dir=str(tmp_path / "other")))


def test_words_beside_a_model_are_its_words(settings, tmp_path, monkeypatch):
    words = [["a", "b", "c"], ["a", "b", "d"]]
    paths = []
    for number, own in enumerate(words):
        folder = tmp_path / str(number)
        folder.mkdir()
        _classifier(2, number).save(folder / "m.keras")
        Vocabulary.build(" ".join(own).encode(), "words").save(folder / VOCABULARY)
        paths.append(str(folder / "m.keras"))
    alone = dataclasses.replace(settings, teacher=(paths[0],))
    _, vocabulary, text = running._teachers(alone)
    assert {"a", "b", "c"} <= set(vocabulary.tokens) and text is None
    assert running._teachers(settings)[1] is None
    with pytest.raises(ValueError, match=r"m\.keras has another vocabulary than"):
        running._teachers(dataclasses.replace(settings, teacher=tuple(paths)))
    corpus = Corpus("ptb", *[np.arange(3)] * 3, Vocabulary.build(b"x y z", "words"))
    monkeypatch.setattr(running, "load_corpus", lambda name: corpus)
    assert running._corpus("ptb", corpus.vocabulary) is corpus
    with pytest.raises(ValueError, match="--corpus=ptb has another vocabulary than --"):
        running._corpus("ptb", vocabulary)


def test_what_a_finished_run_lacks_is_exported(settings, tmp_path, capsys):
    running.run(settings)
    capsys.readouterr()
    other = dataclasses.replace(settings, export=str(tmp_path / "elsewhere"))
    running.run(other)
    shown = capsys.readouterr().out
    assert "done before" in shown and "served: " in shown
    served = tf.saved_model.load(str(tmp_path / "elsewhere"))
    assert served.signatures
    # As a kill behind the export leaves it.
    (tmp_path / "run" / "results.json").unlink()
    running.run(settings)
    assert "| student " in capsys.readouterr().out
    # Another teacher at the same place is no other run's, unless all is replaced.
    _classifier(5, 9).save(tmp_path / "a.keras")
    with pytest.raises(ValueError, match="teacher_sha256 was "):
        running.run(settings)
    running.run(dataclasses.replace(settings, overwrite=True))
    assert "| student " in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["floats", "probabilities"])
def test_labels_may_be_floats_or_probabilities(kind):
    def of(split):
        x, y = split
        return x, y.astype("float32") if kind == "floats" else np.eye(3)[y]

    found = distil(
        _teacher(),
        _classifier(3, 2),
        of(_TRAIN),
        valid=of(_VALID),
        epochs=1,
        batch_size=10,
        verbose=0,
    )
    plain = distil(
        _teacher(),
        _classifier(3, 2),
        _TRAIN,
        valid=_VALID,
        epochs=1,
        batch_size=10,
        verbose=0,
    )
    assert found.rows[0].score == plain.rows[0].score
    with pytest.raises(ValueError, match="labels whole numbers or probabilities"):
        distil(
            _teacher(),
            _classifier(3, 2),
            _TRAIN,
            valid=(_VALID[0], _VALID[1] + 0.5),
            epochs=1,
            verbose=0,
        )


def test_a_folders_text_is_read_as_it_was_trained_on(tmp_path):
    names = {}
    for name, line in (("text", "a b c"), ("valid", "b a b"), ("test", "c c a")):
        path = tmp_path / f"{name}.txt"
        path.write_text(f"{line}\n" * 400)
        names[name] = str(path)
    texts = reading.read_texts(TrainSettings(**names))
    written = {**names, "text_sha256": reading.digest_of(texts)}
    vocabulary = Vocabulary.build(b"a b c " * 9, "words")
    corpus = running._as_trained("d", written, vocabulary)
    shown = [vocabulary.decode(getattr(corpus, split)[:3]) for split in reading.SPLITS]
    assert [line.split() for line in shown] == [
        ["a", "b", "c"],
        ["b", "a", "b"],
        ["c", "c", "a"],
    ]
    (tmp_path / "test.txt").write_text("other\n" * 400)
    with pytest.raises(ValueError, match="was trained on another text than"):
        running._as_trained("d", written, vocabulary)
    with pytest.raises(ValueError, match="does not say what it was trained on"):
        running._as_trained("d", None, None)


def test_mistakes(settings):
    for options, message in (
        ({"teacher": ()}, "needs --teacher"),
        ({"teacher": ("none.keras",)}, "--teacher=none.keras: there is no such file"),
        ({"student": "none.keras"}, "--student=none.keras: there is no such file"),
        ({"student": "0.5"}, "--student must be a .keras file: classifiers say no"),
        ({"student": "1.5"}, r"--student must lie in \(0, 1\], found 1.5"),
        ({"arrays": None}, "needs --arrays of classifiers, or --corpus"),
        ({"corpus": "ptb"}, "give one or the other"),
        ({"arrays": "none.npz"}, "--arrays=none.npz: there is no such file"),
        ({"export": None}, "needs --export"),
        ({"epochs": 0}, "--epochs must be at least 1"),
        ({"temperature": 0.0}, "--temperature must be positive"),
        ({"weight": -1.0}, "--weight must not be negative"),
        ({"digits": True}, "--digits and --teacher do not go together"),
    ):
        with pytest.raises(ValueError, match=message):
            check_distil_settings(dataclasses.replace(settings, **options))
    with pytest.raises(ValueError, match="give `valid`"):
        distil(_classifier(2, 1), _classifier(2, 1), _TRAIN, epochs=1)
    with pytest.raises(ValueError, match="classifiers say no widths"):
        distil(_classifier(2, 1), 0.5, _TRAIN, valid=_VALID, epochs=1)
    with pytest.raises(ValueError, match=r"of as many, found 30 and 15"):
        distil(
            _classifier(2, 1),
            _classifier(2, 1),
            (_TRAIN[0], _VALID[1]),
            valid=_VALID,
            epochs=1,
            verbose=0,
        )
    with pytest.raises(ValueError, match=r"shrunk: `share` must lie in \(0, 1\]"):
        shrunk(fixtures.language_model(), 0.0)
    with pytest.raises(ValueError, match=r"says no width that could be smaller"):
        shrunk(fixtures.causal_transformer(), 0.5)


def test_mistakes_are_said_before_anything_is_trained(tmp_path):
    model = _classifier(2, 1)
    dataset = tf.data.Dataset.from_tensor_slices(_VALID).batch(5)
    odd = (np.full_like(_X[:5], np.nan), _Y[:5])
    named = (_X[:5], np.array(["a", "b", "a", "b", "a"]))
    subclassed = Subclassed(_classifier(2, 2), name="own")
    subclassed(_X[:2])
    words = fixtures.language_model()
    vocabulary = Vocabulary(["<eos>", "a"], "words")
    tokens = [0, 1] * 40
    cases = (
        (([], model, _TRAIN), {}, "one teacher at least"),
        ((model, "s.keras", _TRAIN), {}, "`student` must be a Keras model, found 's"),
        ((model, model, _TRAIN), {"valid": dataset}, "`valid` must be arrays .x, lab"),
        ((model, model, odd), {}, "`train` holds NaN or infinity"),
        ((model, model, _TRAIN), {"test": named}, "`test` must hold numbers, labels"),
        ((model, model, _TRAIN), {"temperature": 0.0}, "`temperature` must"),
        (
            (words, words, tokens),
            {"valid": np.array(tokens), "vocabulary": vocabulary},
            "`vocabulary` has 2 words, the student",
        ),
    )
    for (teacher, student, train), options, message in cases:
        given = {"valid": _VALID, "epochs": 1, "export": tmp_path / "m", **options}
        with pytest.raises(ValueError, match=message):
            distil(teacher, student, train, **given)
    assert not (tmp_path / "m").exists()
    # What a subclassed student takes is seen in the data.
    found = distil(
        _teacher(),
        subclassed,
        _TRAIN,
        valid=_VALID,
        epochs=1,
        export=tmp_path / "m",
        verbose=0,
    )
    classify = tf.saved_model.load(str(tmp_path / "m")).signatures["classify"]
    probs = classify(examples=tf.constant(_X[:3]))["probabilities"]
    expected = tf.nn.softmax(found.student(_X[:3]))
    np.testing.assert_allclose(probs, expected, atol=1e-6)


@keras.saving.register_keras_serializable("tests")
class Subclassed(keras.Model):
    """A classifier that does not say what it takes."""

    def __init__(self, inner, **kwargs):
        super().__init__(**kwargs)
        self.inner = inner

    def call(self, x, training=False):
        return self.inner(x, training=training)

    def get_config(self):
        return {
            **super().get_config(),
            "inner": keras.saving.serialize_keras_object(self.inner),
        }

    @classmethod
    def from_config(cls, config):
        inner = keras.saving.deserialize_keras_object(config.pop("inner"))
        return cls(inner, **config)
