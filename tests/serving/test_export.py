"""Tests of what is written, from which models, and what is refused."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from rlm_tf.averaging import PolyakAverage, WeightAveraging
from rlm_tf.data.vocabulary import Vocabulary
from rlm_tf.layers import GRUCell, MogrifierCell, MogrifierLSTMCell, RewiredLSTMCell
from rlm_tf.models import InducedModelMatching, RegularizedLanguageModel
from rlm_tf.restricted import KneserNey
from rlm_tf.serving import export as export_module
from rlm_tf.serving import export_language_model
from tests.serving.exported import (
    RARE,
    TEXT,
    generate,
    greedy_ids,
    make_model,
    reference_log_probs,
    score,
)

# === What is written ===


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


# === Kinds of models and vocabularies ===


def test_wrapper_and_half_precision(vocabulary, tmp_path):
    model = make_model(vocabulary, dtype="mixed_bfloat16")
    restricted = KneserNey(order=2).fit(vocabulary.encode(TEXT * 2), len(vocabulary))
    wrapper = InducedModelMatching(model, restricted)
    path = export_language_model(wrapper, vocabulary, tmp_path / "x")
    answer = score(tf.saved_model.load(str(path)), ["the cat"])
    assert answer["log_probs"].dtype == np.float32
    expected = reference_log_probs(model, vocabulary, "the cat")
    np.testing.assert_allclose(answer["log_probs"][0], expected, atol=0.05)


@pytest.mark.parametrize(
    ("make_cell", "options"),
    [
        (MogrifierLSTMCell, {"connections": "residual", "dropout_samples": 2}),
        (RewiredLSTMCell, {"mixture_components": 2, "tied": False}),
        (lambda units: MogrifierCell(GRUCell(units), 3, 2), {"embedding_width": 4}),
    ],
)
def test_stronger_models_say_what_they_say_in_keras(
    vocabulary, tmp_path, make_cell, options
):
    model = RegularizedLanguageModel(
        len(vocabulary),
        make_cell(6),
        2,
        input_dropout=0.5,
        output_dropout=0.5,
        seed=4,
        **options,
    )
    for variable in model.trainable_variables:
        variable.assign(variable * 2.0)
    averages = WeightAveraging(PolyakAverage())
    averages.average.update([v.value * 1.2 for v in model.trainable_variables])
    own = model.get_weights()
    text = "the cat saw a dog on the mat ; a dog saw the cat"
    with averages.averaged(model):
        path = export_language_model(model, vocabulary, tmp_path / "x")
        expected = reference_log_probs(model, vocabulary, text)
        greedy = greedy_ids(model, vocabulary, "the cat", 5)
    loaded = tf.saved_model.load(str(path))
    found = score(loaded, [text])["log_probs"][0]
    np.testing.assert_allclose(found, expected, atol=1e-5)
    answer = generate(loaded, ["the cat"], max_tokens=5, temperature=0.0)["text"]
    assert answer == [vocabulary.decode(greedy)]
    # The export keeps the averages, the model its own weights.
    for found, before in zip(model.get_weights(), own, strict=True):
        np.testing.assert_array_equal(found, before)
    assert np.abs(reference_log_probs(model, vocabulary, text) - expected).max() > 0.1


def test_a_chaotic_model_is_compared_while_it_can_be(vocabulary, tmp_path, monkeypatch):
    cell = MogrifierLSTMCell(6)
    model = RegularizedLanguageModel(len(vocabulary), cell, 2, seed=4)
    for variable in model.trainable_variables:
        variable.assign(variable * 8.0)
    before = model.get_weights()
    ids = np.random.default_rng(1).integers(len(vocabulary), size=300)
    grown = export_module._sensitivity(model, ids)
    assert grown[0] < 1e-5 and grown[-1] > 0.1
    export_language_model(model, vocabulary, tmp_path / "x")
    for found, expected in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(found, expected)
    log_softmax_at = export_module.log_softmax_at
    monkeypatch.setattr(
        export_module, "log_softmax_at", lambda *args: log_softmax_at(*args) + 1e-2
    )
    with pytest.raises(ValueError, match="differ from the model's by up to"):
        export_language_model(model, vocabulary, tmp_path / "y")


def test_forced_xla_is_left_out(vocabulary, tmp_path):
    model = make_model(vocabulary, jit_loop=True)
    path = export_language_model(model, vocabulary, tmp_path / "x")
    answer = score(tf.saved_model.load(str(path)), ["the cat"])
    expected = reference_log_probs(model, vocabulary, "the cat")
    np.testing.assert_allclose(answer["log_probs"][0], expected, atol=1e-5)


def causal_convolution(size: int, padding: str = "causal") -> keras.Model:
    tokens = keras.Input([None], dtype="int32")
    x = keras.layers.Embedding(size, 8, embeddings_initializer="normal")(tokens)
    x = keras.layers.Conv1D(8, 3, padding=padding, activation="tanh")(x * 20.0)
    return keras.Model(tokens, keras.layers.Dense(size)(x * 3.0))


def test_any_causal_keras_model(vocabulary, tmp_path):
    model = causal_convolution(len(vocabulary))
    with pytest.raises(ValueError, match="context_length"):
        export_language_model(model, vocabulary, tmp_path / "x")
    path = export_language_model(model, vocabulary, tmp_path / "x", context_length=8)
    loaded = tf.saved_model.load(str(path))
    text = "the cat saw a dog on the mat ; a dog saw the cat"
    expected = reference_log_probs(model, vocabulary, text)
    found = score(loaded, [text])["log_probs"][0]
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert generate(loaded, [text], max_tokens=9)["text"][0]


def test_arguments_of_other_kinds_are_named(vocabulary, tmp_path):
    export: Any = export_language_model  # Wrong types are the point.
    model = make_model(vocabulary)
    with pytest.raises(ValueError, match="`model` must be a Model, found Vocabulary"):
        export(vocabulary, model, tmp_path / "x")
    with pytest.raises(ValueError, match="`vocabulary` must be a Vocabulary, found"):
        export(model, TEXT, tmp_path / "x")


def test_model_that_sees_the_future_is_refused(vocabulary, tmp_path):
    model = causal_convolution(len(vocabulary), padding="same")
    with pytest.raises(ValueError, match="must be causal"):
        export_language_model(model, vocabulary, tmp_path / "x", context_length=9)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("rule", ["whitespace", "characters", "bytes"])
def test_other_rules(rule, tmp_path):
    vocabulary = Vocabulary.build(TEXT, rule=rule)
    model = make_model(vocabulary, width=4, num_layers=1)
    path = export_language_model(model, vocabulary, tmp_path / "x")
    loaded = tf.saved_model.load(str(path))
    text = "The cat sat on the"
    expected = reference_log_probs(model, vocabulary, text)
    found = score(loaded, [text])["log_probs"][0]
    np.testing.assert_allclose(found, expected, atol=1e-5)
    odd = b"\xff\xfe" if rule == "bytes" else "The cat"
    assert score(loaded, [odd])["lengths"][0] == (2 if rule != "characters" else 7)
    assert generate(loaded, [text], max_tokens=20)["full_text"][0].startswith(text)


def test_unknown_words_without_unk_are_named(tmp_path):
    vocabulary = Vocabulary.build(TEXT, rule="words", unknown=False)
    path = export_language_model(make_model(vocabulary), vocabulary, tmp_path / "x")
    loaded = tf.saved_model.load(str(path))
    for call in (
        lambda: score(loaded, [f"the {RARE} sat"]),
        lambda: generate(loaded, [f"the {RARE} sat"]),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=RARE):
            call()


# === Mistakes ===


def test_existing_path(model, vocabulary, tmp_path):
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
    def slightly_wrong(logits, targets):
        return log_softmax_at(logits, targets) + 1e-3

    log_softmax_at = export_module.log_softmax_at
    monkeypatch.setattr(export_module, "log_softmax_at", slightly_wrong)
    with pytest.raises(ValueError, match="differ from the model's by up to 0"):
        export_language_model(model, vocabulary, tmp_path / "x")
    assert not list(tmp_path.iterdir())
