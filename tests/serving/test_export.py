"""Tests of exported language models: strings in, the model's numbers out."""

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

from rlm_tf.data.vocabulary import Vocabulary
from rlm_tf.models import InducedModelMatching, RecurrentLanguageModel
from rlm_tf.restricted import KneserNey
from rlm_tf.serving import LanguageModelService, export_language_model
from rlm_tf.serving import export as export_module

TEXT = """The cat sat on the mat, didn't it?
A dog saw the cat; the cat saw a dog.
Ünïcode wörks 2 times (twice).
"""
RARE = "catamaran"


def make_model(vocabulary: Vocabulary, **options) -> RecurrentLanguageModel:
    options = {"width": 7, "num_layers": 2, "initializer_scale": 0.8, **options}
    return RecurrentLanguageModel(len(vocabulary), dropout=0.5, seed=2, **options)


@pytest.fixture(scope="module")
def vocabulary():
    return Vocabulary.build(TEXT, rule="words", unknown=True)


@pytest.fixture(scope="module")
def model(vocabulary):
    return make_model(vocabulary)


@pytest.fixture(scope="module")
def path(model, vocabulary, tmp_path_factory):
    path = tmp_path_factory.mktemp("exports") / "not" / "yet" / "there"
    assert export_language_model(model, vocabulary, path) == path
    assert [p.name for p in path.parent.iterdir()] == ["there"]  # nothing beside it
    return path


@pytest.fixture(scope="module")
def loaded(path):
    return tf.saved_model.load(str(path))


def score(loaded, texts):
    answer = loaded.signatures["score"](texts=tf.constant(texts, tf.string))
    return {name: value.numpy() for name, value in answer.items()}


def generate(loaded, prompts, **parameters):
    parameters = {
        "max_tokens": 6,
        "temperature": 1.0,
        "top_k": 0,
        "top_p": 1.0,
        "seed": 1,
        **parameters,
    }
    dtypes = {"temperature": tf.float32, "top_p": tf.float32}
    answer = loaded.signatures["generate"](
        prompts=tf.constant(prompts, tf.string),
        **{k: tf.constant(v, dtypes.get(k, tf.int32)) for k, v in parameters.items()},
    )
    return {name: [t.decode() for t in value.numpy()] for name, value in answer.items()}


def reference_log_probs(model, vocabulary, text):
    """Float64 log-softmax of the Keras model over the whole text at once."""
    ids = vocabulary.encode(text)
    read = np.concatenate([[vocabulary.eos_id], ids[:-1]])[np.newaxis]
    logits = model(tf.constant(read, tf.int32)).numpy()[0].astype(np.float64)
    shifted = logits - logits.max(-1, keepdims=True)
    log_probs = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    return log_probs[np.arange(len(ids)), ids]


# === score ===

ODD_TEXTS = [
    "The cat sat",
    "",
    f"A {RARE} saw the cat\nthe dog",
    b"the \xff\xfe\x80 cat \xc3(",
    " \t ",
    "\n\n",
    "wörks Ünïcode \U0001f600",
]


def test_score_is_the_models(model, vocabulary, loaded):
    answer = score(loaded, ODD_TEXTS)
    longest = max(len(vocabulary.encode(text)) for text in ODD_TEXTS)
    assert answer["log_probs"].shape == (len(ODD_TEXTS), longest)
    for row, text in enumerate(ODD_TEXTS):
        ids = vocabulary.encode(text)
        count = len(ids)
        assert answer["lengths"][row] == count
        found = answer["log_probs"][row]
        assert not found[count:].any()
        names = [name.decode() for name in answer["tokens"][row]]
        assert names == [vocabulary.tokens[i] for i in ids] + [""] * (longest - count)
        if count:
            expected = reference_log_probs(model, vocabulary, text)
            np.testing.assert_allclose(found[:count], expected, atol=1e-5)
            np.testing.assert_allclose(answer["total"][row], expected.sum(), rtol=1e-5)
            np.testing.assert_allclose(
                answer["perplexity"][row], np.exp(-expected.mean()), rtol=1e-5
            )
        else:
            assert answer["total"][row] == 0.0
            assert answer["perplexity"][row] == 1.0


def test_invalid_utf8_is_one_unknown_token(vocabulary, loaded):
    names = score(loaded, [b"the \xff\xfe\x80 cat"])["tokens"][0]
    assert [name.decode() for name in names] == ["the", "<unk>", "cat"]


def test_batch_of_zero(loaded):
    answer = score(loaded, [])
    assert answer["log_probs"].shape == (0, 0)
    assert answer["tokens"].shape == (0, 0)
    for name in ("lengths", "total", "perplexity"):
        assert answer[name].shape == (0,)
    nothing = tf.constant([], tf.string)
    answer = loaded.signatures["next_token"](texts=nothing, k=tf.constant(3))
    assert answer["tokens"].shape == answer["probabilities"].shape == (0, 3)
    assert generate(loaded, []) == {"text": [], "full_text": []}


def test_long_text_is_scored_in_windows(model, vocabulary, loaded, rng):
    words = rng.choice(["the", "cat", "dog", "saw", "sat", RARE], 25_000)
    text = " ".join(words)
    assert len(text) > 100_000
    answer = score(loaded, ["the cat", text])
    expected = reference_log_probs(model, vocabulary, text)
    # 25,000 steps carry rounding along.
    np.testing.assert_allclose(answer["log_probs"][1], expected, atol=1e-4)
    np.testing.assert_allclose(answer["total"][1], expected.sum(), rtol=1e-6)
    assert generate(loaded, [text])["full_text"][0].startswith(
        vocabulary.decode(vocabulary.encode(text))
    )


def test_long_text_does_not_ask_for_all_logits():
    wide = Vocabulary([f"w{i}" for i in range(20_000)] + ["<eos>"], "whitespace")
    model = RecurrentLanguageModel(len(wide), 4, 1)
    service = LanguageModelService(model, wide)
    text = tf.constant([" ".join(["w1"] * 30_000)])
    before = _peak_memory()
    service.score(text)
    # 30,000 x 20,001 float32 are 2.4 GB; a block of 1,024 is 82 MB.
    assert _peak_memory() - before < 800e6


def _peak_memory() -> float:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def test_many_texts_equal_one_by_one(loaded):
    texts = [" ".join(["the cat saw a dog"] * (i % 7)) for i in range(40)]
    together = score(loaded, texts)["total"]
    alone = [score(loaded, [text])["total"][0] for text in texts]
    np.testing.assert_allclose(together, alone, atol=1e-4)


def test_windows_shrink_for_large_batches(model, vocabulary, loaded):
    texts = ["the cat saw a dog"] * 9000 + ["a dog saw the cat sat on the mat"]
    answer = score(loaded, texts)
    for row in (0, 8999, 9000):
        expected = reference_log_probs(model, vocabulary, texts[row])
        found = answer["log_probs"][row, : len(expected)]
        np.testing.assert_allclose(found, expected, atol=1e-5)


# === next_token ===


def test_next_token_is_the_models(model, vocabulary, loaded):
    texts = ["The cat", "", f"a {RARE}\n"]
    answer = loaded.signatures["next_token"](texts=tf.constant(texts), k=tf.constant(4))
    for row, text in enumerate(texts):
        ids = np.concatenate([[vocabulary.eos_id], vocabulary.encode(text)])
        logits = model(tf.constant(ids[np.newaxis], tf.int32))[0, -1]
        probs = tf.nn.softmax(tf.cast(logits, tf.float64)).numpy()
        best = np.argsort(-probs)[:4]
        names = [name.decode() for name in answer["tokens"][row].numpy()]
        assert names == [vocabulary.tokens[i] for i in best]
        np.testing.assert_allclose(answer["probabilities"][row], probs[best], rtol=1e-5)


def test_k_is_at_most_the_vocabulary_and_at_least_one(vocabulary, loaded):
    next_token = loaded.signatures["next_token"]
    answer = next_token(texts=tf.constant(["the"]), k=tf.constant(10**6))
    assert answer["tokens"].shape == (1, len(vocabulary))
    np.testing.assert_allclose(tf.reduce_sum(answer["probabilities"]), 1.0, rtol=1e-5)
    with pytest.raises(tf.errors.InvalidArgumentError, match="k must be at least 1"):
        next_token(texts=tf.constant(["the"]), k=tf.constant(0))


# === generate ===


def test_generate_is_greedy_at_temperature_zero(model, vocabulary, loaded):
    prompts = ["The cat", "", "a dog saw\n"]
    answer = generate(loaded, prompts, temperature=0.0)
    for row, prompt in enumerate(prompts):
        prompt_ids = list(vocabulary.encode(prompt))
        ids = [vocabulary.eos_id, *prompt_ids]
        for _ in range(6):
            logits = model(tf.constant([ids], tf.int32))[0, -1]
            ids.append(int(np.argmax(logits)))
        assert answer["text"][row] == vocabulary.decode(ids[-6:])
        assert answer["full_text"][row] == vocabulary.decode(ids[1:])


def test_generate_is_a_function_of_the_seed(loaded):
    prompts = ["The cat", "The cat", "a"]
    first = generate(loaded, prompts, max_tokens=20)
    assert generate(loaded, prompts, max_tokens=20) == first
    assert generate(loaded, prompts, max_tokens=20, seed=2) != first
    assert first["text"][0] != first["text"][1]
    alone = generate(loaded, prompts[:1], max_tokens=20)
    assert alone["text"] == first["text"][:1]


def test_generate_filters(vocabulary, loaded):
    one_word = generate(loaded, ["the"] * 5, top_k=1)
    assert one_word == generate(loaded, ["the"] * 5, temperature=0.0)
    assert one_word == generate(loaded, ["the"] * 5, top_p=0.0)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_tokens": -1}, "max_tokens must be in"),
        ({"max_tokens": 10**9}, "max_tokens must be in"),
        ({"temperature": -1.0}, "temperature must be"),
        ({"temperature": float("nan")}, "temperature must be"),
        ({"temperature": float("inf")}, "temperature must be"),
        ({"top_k": -3}, "top_k must be"),
        ({"top_p": 1.5}, "top_p must be"),
        ({"top_p": float("nan")}, "top_p must be"),
    ],
)
def test_parameters_out_of_range_are_named(loaded, parameters, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        generate(loaded, ["the"], **parameters)


def test_odd_prompts_are_continued(loaded):
    answer = generate(loaded, ODD_TEXTS, max_tokens=4)
    assert len(answer["text"]) == len(ODD_TEXTS)
    assert all(answer["full_text"])
    assert generate(loaded, ["the"], max_tokens=0)["text"] == [""]


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
