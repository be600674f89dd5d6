"""Exports of classifiers of documents: answers on strings, odd texts, mistakes."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf import load_model
from rlm_tf.labelling import SeedRule, WordList
from rlm_tf.layers import TfidfBag
from rlm_tf.models import TextClassifier, TextReader
from rlm_tf.serving import MAX_TEXT_BYTES, export_text_classifier

_WORDS = WordList(["ship", "sea", "tree", "wood", "old"])
_TEXTS = ["an old ship at sea", "", "a tree! of old wood", "\x00", "ship " * 9, "whale"]
_RULE = SeedRule({"land": ["tree"], "water": ["ship", "old ship*"]})


def _model(**options):
    bag = TfidfBag(len(_WORDS), 2)
    bag.adapt(_WORDS.rows(_TEXTS, 8))
    # Of padding, unknown words, and the five.
    bag.kernel.assign([[0, 0], [0, 0], [-2, 3], [0, 2], [4, 0], [1, 0], [0, 1]])
    given = {"reader": TextReader(_WORDS, 8), "class_names": ("land", "water")}
    model = TextClassifier(bag, 2, head=False, **{**given, **options})
    model.build()
    return model


def test_answers_are_those_of_the_model(tmp_path):
    model = _model(threshold=0.6)
    export_text_classifier(model, tmp_path / "m", rule=_RULE, temperature=2.0)
    served = tf.saved_model.load(str(tmp_path / "m")).signatures
    found = served["classify"](texts=tf.constant(_TEXTS))
    rows = model.reader.rows(_TEXTS)
    probs = tf.nn.softmax(model(rows.tokens) / 2.0).numpy()
    np.testing.assert_allclose(found["probabilities"], probs, atol=1e-6)
    names = np.array(["land", "water", ""])
    expected = names[model.labels_of(probs)]
    # Without a word nothing is said, whatever the probabilities are.
    assert model.labels_of(np.full([1, 2], 0.5)).tolist() == [-1]
    expected[[1, 3]] = ""
    assert [label.decode() for label in found["labels"].numpy()] == expected.tolist()
    assert {"land", "water"} <= set(expected)
    np.testing.assert_array_equal(found["cut"], rows.cut)
    assert found["cut"].numpy().tolist() == [False] * 4 + [True, False]
    matched = served["match"](texts=tf.constant(_TEXTS))
    own = _RULE.match(_TEXTS)
    np.testing.assert_array_equal(matched["counts"], own.counts)
    labels = ["" if label < 0 else _RULE.class_names[label] for label in own.labels]
    assert [label.decode() for label in matched["labels"].numpy()] == labels
    # As the model, which reads no further than its window.
    long = "word " * 250_000
    assert len(long) > MAX_TEXT_BYTES
    found = served["classify"](texts=tf.constant([long, "ü" * MAX_TEXT_BYTES]))
    probs = tf.nn.softmax(model(model.reader.rows([long]).tokens) / 2.0)
    np.testing.assert_allclose(found["probabilities"][:1], probs, atol=1e-6)
    assert found["cut"].numpy().all()
    with pytest.raises(tf.errors.InvalidArgumentError, match="at most 1000000 bytes"):
        served["match"](texts=tf.constant([long]))
    none = served["classify"](texts=tf.constant([], tf.string))
    assert none["labels"].shape == (0,) and none["probabilities"].shape == (0, 2)


def test_a_loaded_model_is_exported(tmp_path):
    model = _model()
    model.compile("sgd")
    model.save(tmp_path / "model.keras")
    loaded = load_model(tmp_path / "model.keras")
    assert loaded.class_names == ("land", "water")
    assert loaded.reader.words == _WORDS
    export_text_classifier(loaded, tmp_path / "m")
    served = tf.saved_model.load(str(tmp_path / "m")).signatures
    assert set(served) == {"classify"}
    found = served["classify"](texts=tf.constant(_TEXTS))["probabilities"]
    wanted = tf.nn.softmax(model(model.reader.rows(_TEXTS).tokens))
    np.testing.assert_allclose(found, wanted, atol=1e-5)


@pytest.mark.landing
def test_a_process_with_tensorflow_alone_answers(tmp_path):
    export_text_classifier(_model(), tmp_path / "m", rule=_RULE)
    program = (
        "import sys, tensorflow as tf\n"
        f"served = tf.saved_model.load({str(tmp_path / 'm')!r}).signatures\n"
        "print(served['classify'](texts=tf.constant(['old ship']))['labels'].numpy())\n"
        "print(served['match'](texts=tf.constant(['a tree']))['labels'].numpy())\n"
        "assert not {'keras', 'rlm_tf', 'tensorflow_text'} & {*sys.modules} - {'keras'}"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "[b'land']" in done.stdout


def test_mistakes(tmp_path):
    with pytest.raises(ValueError, match="must be a TextClassifier, found str"):
        export_text_classifier("model", tmp_path / "m")
    with pytest.raises(ValueError, match="must have a reader of texts and names"):
        export_text_classifier(_model(reader=None), tmp_path / "m")
    with pytest.raises(ValueError, match="`class_names` must be 2 names, found 1"):
        _model(class_names=("land",))
    with pytest.raises(ValueError, match="found random"):
        random = SeedRule({"a": ["b"], "c": ["d"]}, ties="random")
        export_text_classifier(_model(), tmp_path / "m", rule=random)
    broken = _model()
    broken.encoder.kernel.assign(np.full([len(_WORDS), 2], np.nan))
    with pytest.raises(ValueError, match="NaN"):
        export_text_classifier(broken, tmp_path / "m")
    assert not (tmp_path / "m").exists()
