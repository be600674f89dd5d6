"""Exports of models of subwords answer texts of any language."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.data import Vocabulary
from rlm_tf.generation import generate_text
from rlm_tf.serving import export_language_model
from tests.serving.exported import generate, make_model, reference_log_probs, score

TEXT = "the cat sat on the mat .\n\u6211\u4eec\u5728\u5bb6\u91cc\u770b\u4e66\n" * 30


@pytest.fixture(scope="module")
def vocabulary():
    return Vocabulary.build(
        TEXT, "sentencepiece-unigram", reserved=("<unk>", "<eos>", "[MASK]")
    )


@pytest.fixture(scope="module")
def path(vocabulary, tmp_path_factory):
    # Of reserved names, of which none may be said, the model is surest.
    model = make_model(vocabulary)
    bias = np.zeros(len(vocabulary), np.float32)
    bias[[0, 2]] = 30.0
    model.output_layer.bias.assign(bias)
    path = tmp_path_factory.mktemp("subwords") / "export"
    return model, export_language_model(model, vocabulary, path)


@pytest.mark.landing
def test_texts_of_any_language_are_scored(vocabulary, path):
    model, path = path
    texts = ["the cat\nsat", "\u6211\u4eec \U0001f642 \u2581\x1a", ""]
    answer = score(tf.saved_model.load(str(path)), texts)
    for row, text in enumerate(texts):
        ids = vocabulary.encode(text)
        assert answer["lengths"][row] == len(ids)
        np.testing.assert_allclose(
            answer["log_probs"][row, : len(ids)],
            reference_log_probs(model, vocabulary, text),
            atol=1e-5,
        )
        names = [name.decode() for name in answer["tokens"][row, : len(ids)]]
        assert names == [vocabulary.tokens[i] for i in ids]


def test_reserved_names_are_never_said(vocabulary, path):
    model, path = path
    loaded = tf.saved_model.load(str(path))
    prompts = ["the cat", "\u6211\u4eec"]
    for temperature in (0.0, 1.0):
        answer = generate(loaded, prompts, max_tokens=30, temperature=temperature)
        for prompt, text, full in zip(
            prompts, answer["text"], answer["full_text"], strict=True
        ):
            assert "\u2047" not in text and "MASK" not in text
            assert full.startswith(prompt) and len(full) > len(prompt)
        same = {"temperature": temperature, "top_p": 1.0}
        found = generate_text(model, vocabulary, prompts, 30, **same)
        assert found == answer["text"]


@pytest.mark.landing
def test_a_bare_process_needs_tensorflow_text_alone(path):
    program = """
import sys
import tensorflow as tf
import tensorflow_text
model = tf.saved_model.load(sys.argv[1])
answer = model.signatures["score"](texts=tf.constant(["the \u6211"]))
assert "rlm_tf" not in sys.modules and "sentencepiece" not in sys.modules
print(answer["total"].numpy()[0])
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(path[1])],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    expected = score(tf.saved_model.load(str(path[1])), ["the \u6211"])["total"][0]
    assert float(done.stdout) == pytest.approx(float(expected), rel=1e-5)
