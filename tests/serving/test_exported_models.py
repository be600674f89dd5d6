"""Exports of every kind of model and vocabulary answer as the models do."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.averaging import PolyakAverage, WeightAveraging
from rlm_tf.data.text.vocabulary import Vocabulary
from rlm_tf.layers import GRUCell, MogrifierCell, MogrifierLSTMCell, RewiredLSTMCell
from rlm_tf.models import InducedModelMatching, RegularizedLanguageModel
from rlm_tf.restricted import KneserNey
from rlm_tf.serving import export_language_model
from rlm_tf.serving.export_answers import ModelAnswers
from tests.serving.exported import (
    RARE,
    TEXT,
    generate,
    greedy_ids,
    make_model,
    reference_log_probs,
    score,
)


@pytest.mark.landing
def test_wrapper_and_half_precision(vocabulary, tmp_path):
    model = make_model(vocabulary, num_layers=1, dtype="mixed_bfloat16")
    restricted = KneserNey(order=2).fit(vocabulary.encode(TEXT * 2), len(vocabulary))
    wrapper = InducedModelMatching(model, restricted)
    path = export_language_model(wrapper, vocabulary, tmp_path / "x")
    answer = score(tf.saved_model.load(str(path)), ["the cat"])
    assert answer["log_probs"].dtype == np.float32
    expected = reference_log_probs(model, vocabulary, "the cat")
    np.testing.assert_allclose(answer["log_probs"][0], expected, atol=0.05)


@pytest.mark.landing
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


@pytest.mark.landing
def test_a_chaotic_model_is_compared_while_it_can_be(vocabulary, tmp_path):
    cell = MogrifierLSTMCell(6)
    model = RegularizedLanguageModel(len(vocabulary), cell, 2, seed=4)
    for variable in model.trainable_variables:
        variable.assign(variable * 8.0)
    before = model.get_weights()
    ids = np.random.default_rng(1).integers(len(vocabulary), size=300)
    grown = ModelAnswers(model, None, vocabulary.eos_id).sensitivity(ids)
    assert grown[0] < 1e-5 and grown[-1] > 0.1
    export_language_model(model, vocabulary, tmp_path / "x")
    for found, expected in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.landing
def test_forced_xla_is_left_out(vocabulary, tmp_path):
    model = make_model(vocabulary, num_layers=1, jit_loop=True)
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


@pytest.mark.landing
def test_model_that_sees_the_future_is_refused(vocabulary, tmp_path):
    model = causal_convolution(len(vocabulary), padding="same")
    with pytest.raises(ValueError, match="must be causal"):
        export_language_model(model, vocabulary, tmp_path / "x", context_length=9)
    assert not list(tmp_path.iterdir())


@pytest.mark.landing
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


@pytest.mark.landing
def test_unknown_words_without_unk_are_named(tmp_path):
    vocabulary = Vocabulary.build(TEXT, rule="words", unknown=False)
    model = make_model(vocabulary, num_layers=1)
    path = export_language_model(model, vocabulary, tmp_path / "x")
    loaded = tf.saved_model.load(str(path))
    for call in (
        lambda: score(loaded, [f"the {RARE} sat"]),
        lambda: generate(loaded, [f"the {RARE} sat"]),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=RARE):
            call()
