"""Exports of encoders: answers on strings against Keras, odd texts, mistakes."""

from __future__ import annotations

import ast
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.data import encoder_vocabulary, special_ids
from rlm_tf.data.labelled.encoded_rows import encoded_rows
from rlm_tf.layers import TransformerEncoder
from rlm_tf.models import Electra, MaskedLanguageModel, SequenceClassifier
from rlm_tf.serving import export_encoder

_VOCABULARY = encoder_vocabulary("some words of a text\nand of another one\n" * 30, 290)
_IDS = special_ids(_VOCABULARY)
_LENGTH = 16
_TEXTS = ["some words", "", "of a text\nand another " * 9, "one"]


def _encoder(**options):
    return TransformerEncoder(
        len(_VOCABULARY),
        num_layers=1,
        width=8,
        num_heads=2,
        initializer_range=0.5,
        **options,
    )


def _export(model, path, **options):
    export_encoder(model, _VOCABULARY, path, length=_LENGTH, **options)
    return tf.saved_model.load(str(path)).signatures


def _rows(texts, texts_b=None):
    tables = _VOCABULARY.graph_tables()
    return encoded_rows(tables, _IDS, tf.constant(texts), texts_b, _LENGTH)


def _by_hand(model, encoder, texts):
    rows = _rows(texts)
    features, present = encoder(rows.tokens).numpy(), rows.tokens.numpy() != 0
    return np.stack([f[p].mean(0) for f, p in zip(features, present, strict=True)])


def test_a_masked_language_model(tmp_path):
    model = MaskedLanguageModel(_encoder())
    found = _export(model, tmp_path / "m")
    assert set(found) == {"embed", "fill_mask"}
    answer = found["embed"](texts=tf.constant(_TEXTS))
    expected = _by_hand(model, model.encoder, _TEXTS)
    np.testing.assert_allclose(answer["embeddings"], expected, atol=1e-5)
    assert answer["cut"].numpy().tolist() == [False, False, True, False]
    texts = ["some [MASK] of  a [MASK]", "words", "[MASK]"]
    answer = found["fill_mask"](texts=tf.constant(texts), k=tf.constant(3))
    assert answer["tokens"].shape == answer["probabilities"].shape == (3, 2, 3)
    # The blank before a mask is the token's.
    pieces = [_VOCABULARY.encode(part).tolist() for part in ("some", " of a")]
    row = [2, *pieces[0], 4, *pieces[1], 4, 3]
    logits = model(np.array([row]))[0].numpy().astype(np.float64)
    allowed = [
        i for i in range(len(_VOCABULARY)) if i not in (*_VOCABULARY.never_in_text, 3)
    ]
    for mask, place in enumerate(np.flatnonzero(np.array(row) == 4)):
        powers = np.exp(logits[place, allowed])
        best = np.argsort(-powers)[:3]
        np.testing.assert_allclose(
            answer["probabilities"][0, mask], powers[best] / powers.sum(), rtol=1e-4
        )
        names = [_VOCABULARY.tokens[allowed[i]].replace("\u2581", " ") for i in best]
        said = [name.decode() for name in answer["tokens"][0, mask].numpy()]
        assert said == names
    assert not answer["probabilities"][1].numpy().any()
    assert answer["tokens"][2, 1].numpy().tolist() == [b""] * 3
    with pytest.raises(tf.errors.InvalidArgumentError, match="k must be at least 1"):
        found["fill_mask"](texts=tf.constant(texts), k=tf.constant(0))
    answer = found["fill_mask"](texts=tf.constant([], tf.string), k=tf.constant(2))
    assert answer["tokens"].shape == (0, 0, 2)
    # No more than may be said.
    answer = found["fill_mask"](texts=tf.constant(["[MASK]"]), k=tf.constant(10_000))
    assert answer["tokens"].shape == (1, 1, len(allowed))
    np.testing.assert_allclose(tf.reduce_sum(answer["probabilities"]), 1, rtol=1e-4)


def test_electra(tmp_path):
    model = Electra(_encoder(), _encoder(seed=1, num_segments=0))
    found = _export(model, tmp_path / "e")
    assert set(found) == {"embed", "fill_mask", "token_scores"}
    answer = found["token_scores"](texts=tf.constant(_TEXTS))
    rows = _rows(_TEXTS)
    expected = tf.sigmoid(model(rows.tokens)).numpy()
    for row, tokens in enumerate(rows.tokens.numpy()):
        size = int(np.count_nonzero(tokens)) - 2
        np.testing.assert_allclose(
            answer["probabilities"][row, :size], expected[row, 1 : 1 + size], rtol=1e-4
        )
        said = b"".join(answer["tokens"].numpy()[row]).decode()
        assert said == _VOCABULARY.decode(tokens[1 : 1 + size])
        assert not answer["probabilities"][row, size:].numpy().any()
    vectors = found["embed"](texts=tf.constant(_TEXTS))["embeddings"]
    by_hand = _by_hand(model, model.discriminator, _TEXTS)
    np.testing.assert_allclose(vectors, by_hand, atol=1e-5)


@pytest.mark.parametrize("pairs", [False, True])
def test_a_classifier(tmp_path, pairs):
    model = SequenceClassifier(_encoder(num_segments=2), 3, seed=2)
    found = _export(model, tmp_path / "c", labels=("x", "y", "z"), pairs=pairs)
    second = _TEXTS[::-1] if pairs else None
    given = {"texts": tf.constant(_TEXTS)}
    if pairs:
        given["texts_b"] = tf.constant(second)
    answer = found["classify"](**given)
    rows = _rows(_TEXTS, second)
    expected = tf.nn.softmax(model((rows.tokens, rows.segments))).numpy()
    np.testing.assert_allclose(answer["probabilities"], expected, rtol=1e-4)
    names = [b"xyz"[i : i + 1] for i in expected.argmax(1)]
    assert answer["labels"].numpy().tolist() == names
    np.testing.assert_array_equal(answer["cut"], rows.cut)
    none = {name: value[:0] for name, value in given.items()}
    assert found["classify"](**none)["probabilities"].shape == (0, 3)
    if pairs:
        given["texts_b"] = given["texts_b"][:2]
        with pytest.raises(tf.errors.InvalidArgumentError, match="as many, found"):
            found["classify"](**given)


def test_numbers(tmp_path):
    model = SequenceClassifier(_encoder(), None)
    answer = _export(model, tmp_path / "n")["classify"](texts=tf.constant(_TEXTS))
    np.testing.assert_allclose(answer["values"], model(_rows(_TEXTS).tokens), atol=1e-5)


def test_odd_texts(tmp_path):
    model = SequenceClassifier(_encoder(num_segments=2), 3, seed=2)
    served = _export(model, tmp_path / "c", labels=("x", "y", "z"))["classify"]
    million = b"some words " * 90_909
    texts = [
        million,
        b"some words " * 40,
        b"some \xff words",
        b"a\x00b",
        b"[MASK] [CLS]",
    ]
    answer = served(texts=tf.constant(texts))
    probabilities = answer["probabilities"].numpy()
    np.testing.assert_allclose(probabilities.sum(1), 1, rtol=1e-5)
    # Of a long one its beginning counts.
    np.testing.assert_allclose(probabilities[0], probabilities[1], rtol=1e-5)
    assert answer["cut"].numpy().tolist() == [True, True, False, False, False]
    # What is typed is characters, no mark.
    assert np.count_nonzero(_rows(["[MASK] [CLS] [SEP]"]).tokens.numpy() == 4) == 0
    with pytest.raises(tf.errors.InvalidArgumentError, match="1000000 bytes each, fo"):
        served(texts=tf.constant([million + b"and more"]))


@pytest.mark.landing
def test_a_process_with_tensorflow_and_its_text_operations_alone_answers(tmp_path):
    model = Electra(_encoder(), _encoder(seed=1))
    electra = _export(model, tmp_path / "e")
    classifier = SequenceClassifier(_encoder(num_segments=2), 3, seed=2)
    other = _export(classifier, tmp_path / "c", labels=("x", "y", "z"))
    program = """
import sys, tensorflow as tf, tensorflow_text
texts = tf.constant(["some words", "", "one"])
electra, other = (tf.saved_model.load(path).signatures for path in sys.argv[1:])
print(other["classify"](texts=texts)["labels"].numpy().tolist())
print(electra["embed"](texts=texts)["embeddings"].numpy()[0, :2].tolist())
found = electra["fill_mask"](texts=tf.constant(["some [MASK]"]), k=tf.constant(1))
print(found["tokens"].numpy().tolist())
print(electra["token_scores"](texts=texts)["tokens"].numpy()[0].tolist())
assert "rlm_tf" not in sys.modules
"""
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "e", tmp_path / "c"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = [ast.literal_eval(line) for line in done.stdout.splitlines()]
    texts = tf.constant(["some words", "", "one"])
    assert said[0] == other["classify"](texts=texts)["labels"].numpy().tolist()
    vectors = electra["embed"](texts=texts)["embeddings"].numpy()
    np.testing.assert_allclose(said[1], vectors[0, :2], rtol=1e-5)
    filled = electra["fill_mask"](texts=tf.constant(["some [MASK]"]), k=tf.constant(1))
    assert said[2] == filled["tokens"].numpy().tolist()
    assert b"".join(said[3]) == b"some words"


def test_mistakes(tmp_path):
    model = SequenceClassifier(_encoder(), 3)
    with pytest.raises(ValueError, match="one name for each of 3 classes, found 2"):
        _export(model, tmp_path / "a", labels=("x", "y"))
    other = encoder_vocabulary("other words of some text\n" * 30, 280)
    with pytest.raises(ValueError, match=r"the encoder has \d+ tokens, the vocabulary"):
        export_encoder(
            MaskedLanguageModel(_encoder()), other, tmp_path / "b", length=_LENGTH
        )
    with pytest.raises(ValueError, match="must be a MaskedLanguageModel, an Electra"):
        export_encoder(tf.keras.Sequential(), other, tmp_path / "c", length=_LENGTH)
    short = MaskedLanguageModel(_encoder(positions="absolute", max_length=8))
    with pytest.raises(ValueError, match="`length` must be at most 8, what the enc"):
        export_encoder(short, _VOCABULARY, tmp_path / "e", length=9)
    broken = MaskedLanguageModel(_encoder())
    broken.head.dense.bias.assign(np.full(8, np.nan))
    with pytest.raises(ValueError, match="holds NaN"):
        _export(broken, tmp_path / "d")
    assert not any(tmp_path.iterdir())
