"""Tests of what is written, from which models, and what is refused."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from rlm_tf.data.text.vocabulary import Vocabulary
from rlm_tf.serving import export as export_module
from rlm_tf.serving import export_answers, export_language_model
from rlm_tf.serving.export_answers import ModelAnswers
from rlm_tf.serving.saved_model import check_weights
from tests.serving.exported import (
    generate,
    make_model,
    score,
)

# === What is written ===


@pytest.mark.landing
def test_bare_process_answers(path, loaded, tmp_path):
    program = """
import json, sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("rlm_tf", "tf_keras", "tensorflow_probability"):
            raise AssertionError(f"imported {name}")

sys.meta_path.insert(0, Refuse())
import tensorflow as tf
import tensorflow_text

model = tf.saved_model.load(sys.argv[1])
answer = model.signatures["score"](texts=tf.constant(["The cat sat", ""]))
text = model.signatures["generate"](
    prompts=tf.constant(["The cat"]), max_tokens=tf.constant(6),
    temperature=tf.constant(1.0), top_k=tf.constant(0), top_p=tf.constant(1.0),
    eta=tf.constant(0.0), typical_p=tf.constant(1.0), calibration=tf.constant(0.0),
    seed=tf.constant(1))["text"]
words = model.signatures["next_token"](texts=tf.constant(["a"]), k=tf.constant(2))
assert "rlm_tf" not in sys.modules
print(json.dumps([answer["total"].numpy().tolist(), text.numpy()[0].decode(),
                  words["tokens"].shape.as_list()]))
"""
    result = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert "custom gradients" not in result.stderr
    total, text, shape = json.loads(result.stdout)
    np.testing.assert_allclose(
        total, score(loaded, ["The cat sat", ""])["total"], atol=1e-5
    )
    assert text == generate(loaded, ["The cat"])["text"][0]
    assert shape == [1, 2]


def test_a_model_without_a_discriminator_scores_no_pairs(loaded):
    assert "score_pairs" not in loaded.signatures


@pytest.mark.landing
def test_saved_model_cli_lists_the_signatures(path):
    result = subprocess.run(
        [
            str(pathlib.Path(sys.executable).with_name("saved_model_cli")),
            *("show", "--dir", str(path), "--all"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    for expected in (
        "signature_def['score']",
        "signature_def['next_token']",
        "signature_def['generate']",
        "inputs['max_tokens'] tensor_info:\n        dtype: DT_INT32",
        "outputs['perplexity'] tensor_info:\n        dtype: DT_FLOAT",
    ):
        assert expected in result.stdout


def read_proto(path):
    proto = saved_model_pb2.SavedModel()
    proto.ParseFromString((path / "saved_model.pb").read_bytes())
    return proto


def test_only_operations_of_plain_tensorflow(path):
    graph = read_proto(path).meta_graphs[0].graph_def
    nodes = [*graph.node, *(n for f in graph.library.function for n in f.node_def)]
    names = {node.op for node in nodes}
    assert not [name for name in names if "Text>" in name or "Xla" in name]
    assert "PyFunc" not in names and "EagerPyFunc" not in names
    assert not any("_gradient_op_type" in node.attr for node in nodes)


def test_weights_and_nothing_of_training_are_saved(vocabulary, tmp_path, rng):
    model = make_model(vocabulary)
    model.compile(optimizer=keras.optimizers.Adam(0.01))
    tokens = rng.integers(len(vocabulary), size=(4, 5)).astype(np.int32)
    start = np.ones(4, np.int32)
    weights = np.ones((4, 5), np.float32)
    model.fit((tokens, start), tokens, sample_weight=weights, batch_size=4, verbose=0)
    path = export_language_model(model, vocabulary, tmp_path / "trained")
    reader = tf.train.load_checkpoint(str(path / "variables" / "variables"))
    dtypes = reader.get_variable_to_dtype_map()
    shapes = reader.get_variable_to_shape_map()
    found = sorted(
        tuple(shapes[k]) for k, dtype in dtypes.items() if dtype != tf.string
    )
    assert found == sorted(tuple(w.shape) for w in model.trainable_variables)
    # The names of tokens are there; the sentences are not.
    content = b"".join(p.read_bytes() for p in path.rglob("*") if p.is_file())
    assert b"the cat" not in content


# === Mistakes ===


@pytest.mark.landing
def test_existing_path(vocabulary, tmp_path):
    model = make_model(vocabulary, num_layers=1)
    path = tmp_path / "x"
    path.mkdir()
    export_language_model(model, vocabulary, path)  # an empty folder is no obstacle
    written = (path / "saved_model.pb").stat().st_mtime_ns
    with pytest.raises(FileExistsError, match=r"already holds a SavedModel.*overwrite"):
        export_language_model(model, vocabulary, path)
    assert (path / "saved_model.pb").stat().st_mtime_ns == written
    export_language_model(model, vocabulary, path, overwrite=True)
    assert (path / "saved_model.pb").stat().st_mtime_ns > written
    assert [p.name for p in tmp_path.iterdir()] == ["x"]

    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("precious")
    for place in (other, other / "thesis.txt"):
        with pytest.raises(FileExistsError, match="not a SavedModel"):
            export_language_model(model, vocabulary, place, overwrite=True)
    assert (other / "thesis.txt").read_text() == "precious"


def test_wrong_vocabulary(model, tmp_path):
    other = Vocabulary.build("one two three", rule="words")
    with pytest.raises(ValueError, match=r"predicts \d+ tokens.*has 4"):
        export_language_model(model, other, tmp_path / "x")
    assert not list(tmp_path.iterdir())


def test_wrong_numbers_are_noticed(model, vocabulary, tmp_path, monkeypatch):
    def slightly_wrong(answers, ids):
        log_probs, after = predictions(answers, ids)
        return log_probs + 1e-3, after

    predictions = ModelAnswers.predictions
    monkeypatch.setattr(ModelAnswers, "predictions", slightly_wrong)
    with pytest.raises(ValueError, match="differ from the model's by up to 0"):
        export_language_model(model, vocabulary, tmp_path / "x")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("value", "name"),
    [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "minus infinity, which only")],
)
def test_weights_of_diverged_training_are_named(vocabulary, tmp_path, value, name):
    """Of a word that no text has, too: what is compared cannot see them."""
    model = make_model(vocabulary, num_layers=1)
    matrix = model.embedding.embeddings.numpy()
    matrix[vocabulary.id_of("twice"), 2] = value
    model.embedding.embeddings.assign(matrix)
    message = f"export_language_model: the weight embedding/embeddings holds {name}"
    with pytest.raises(ValueError, match=message):
        export_language_model(model, vocabulary, tmp_path / "x")
    assert not list(tmp_path.iterdir())


def test_minus_infinity_may_forbid_words_and_actions():
    forbidden = np.array([0.0, -np.inf], np.float32)
    bias, table = keras.Variable(forbidden), keras.Variable(forbidden[np.newaxis])
    check_weights("f", [bias])
    check_weights("f", [bias, table], tables=True)
    with pytest.raises(ValueError, match=r"f: the weight .* holds minus infinity"):
        check_weights("f", [bias, table])


def test_answers_that_are_no_numbers_do_not_pass(model, vocabulary, path, monkeypatch):
    def nan(answers, ids):
        log_probs, after = predictions(answers, ids)
        return log_probs * np.nan, after

    predictions = ModelAnswers.predictions
    monkeypatch.setattr(ModelAnswers, "predictions", nan)
    answers = ModelAnswers(model, None, vocabulary.eos_id)
    with pytest.raises(ValueError, match="differ from the model's by up to nan"):
        export_module._check_numbers(path, answers, vocabulary, None)


def test_words_that_must_not_come_are_no_difference():
    """A bias of minus infinity forbids a word."""
    found = np.array([-np.inf, -1.0, -np.inf, np.nan])
    expected = np.array([-np.inf, -2.0, -1.0, -1.0])
    np.testing.assert_array_equal(
        export_answers.relative_difference(found, expected), [0.0, 0.5, np.inf, np.nan]
    )


def test_check_holds_few_logits_at_once(model, vocabulary, path, monkeypatch):
    """Of a million words, the logits of its text were gigabytes."""
    blocks, output_logits = [], type(model).output_logits

    def spy(self, features, *arguments):
        blocks.append(features.shape[1])
        return output_logits(self, features, *arguments)

    monkeypatch.setattr(type(model), "output_logits", spy)
    monkeypatch.setattr(export_answers, "_LOGITS", 20 * len(vocabulary))
    monkeypatch.setattr(export_answers, "_WORDS", 5)
    answers = ModelAnswers(model, None, vocabulary.eos_id)
    export_module._check_numbers(path, answers, vocabulary, None)
    assert max(blocks) == 20 and sum(blocks) > 1000


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ([keras.layers.Dense(3)], r"fails on tokens \[1, 4\]"),
        (
            [keras.layers.Embedding(30, 5), keras.layers.GlobalAveragePooling1D()],
            r"must map int tokens \[B, T\] to logits .* makes \(1, 5\) of tokens",
        ),
    ],
)
def test_models_of_other_things_are_named(vocabulary, tmp_path, layers, message):
    model = keras.Sequential(layers)
    if len(layers) == 1:
        model.build((None, 7))
    with pytest.raises(ValueError, match=message):
        export_language_model(model, vocabulary, tmp_path / "x", context_length=4)
