"""Means of language models: what they predict, states, exports, mistakes."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.data import Vocabulary
from rlm_tf.evaluation import target_log_probs
from rlm_tf.models import (
    EnsembleLanguageModel,
    InBatchContexts,
    InducedModelMatching,
    TransformerLanguageModel,
)
from rlm_tf.restricted import KneserNey
from rlm_tf.serving import export_language_model
from tests.models.imm import imm_fixtures as fixtures

WORDS = fixtures.stream(60)


def _members():
    return [
        fixtures.language_model(seed=1),
        TransformerLanguageModel(fixtures.VOCABULARY, 4, 1, 2, 3, seed=2),
    ]


def test_it_gives_the_mean_probability_of_each_token():
    members = _members()
    ensemble = EnsembleLanguageModel(members)
    options = {"batch_size": 3, "window": 7, "prefix": 0}
    each = [target_log_probs(model, WORDS, **options) for model in members]
    found = target_log_probs(ensemble, WORDS, **options)
    np.testing.assert_allclose(np.exp(found), np.mean(np.exp(each), axis=0), rtol=1e-5)
    logits = ensemble(WORDS[None, :9])
    parts = [tf.nn.softmax(model(WORDS[None, :9])) for model in members]
    np.testing.assert_allclose(np.exp(logits), np.mean(parts, axis=0), rtol=1e-5)


def test_the_temperature_is_that_of_each_model():
    members = _members()
    ensemble = EnsembleLanguageModel(members)
    options = {"batch_size": 1, "window": 60, "prefix": 0, "temperature": 1.7}
    each = [target_log_probs(model, WORDS, **options) for model in members]
    found = target_log_probs(ensemble, WORDS, **options)
    np.testing.assert_allclose(np.exp(found), np.mean(np.exp(each), axis=0), rtol=1e-5)


def test_wrappers_are_taken_off_and_one_model_is_itself():
    model = fixtures.language_model()
    restricted = KneserNey(2).fit(WORDS, fixtures.VOCABULARY)
    wrapped = InducedModelMatching(model, restricted, InBatchContexts())
    alone = EnsembleLanguageModel([wrapped])
    assert alone.models == [model]
    expected = tf.nn.log_softmax(model(WORDS[None, :5]))
    np.testing.assert_allclose(alone(WORDS[None, :5]), expected, atol=1e-6)


def test_a_list_is_exported_and_answers_strings(tmp_path):
    vocabulary = Vocabulary.build("a b c d e f\n", "words")
    size = len(vocabulary)
    members = [
        fixtures.RecurrentLanguageModel(size, 4, 1, jit_loop=True, seed=seed)
        for seed in (1, 2)
    ]
    mixture = (KneserNey(2).fit(WORDS, size).with_floor(0.1), 0.3)
    folder = export_language_model(
        members, vocabulary, tmp_path / "both", mixture=mixture
    )
    found = tf.saved_model.load(str(folder)).signatures["score"](
        texts=tf.constant(["a b"])
    )["log_probs"]
    ids = vocabulary.encode("a b")
    read = np.concatenate([[vocabulary.eos_id], ids])[None]
    probs = np.mean([tf.nn.softmax(model(read)) for model in members], axis=0)[0]
    own = [probs[place, token] for place, token in enumerate(ids)]
    simple = [
        float(mixture[0].probs(np.array([before]))[0, token])
        for before, token in zip(read[0], ids, strict=False)
    ]
    expected = np.log(0.7 * np.array(own) + 0.3 * np.array(simple))
    np.testing.assert_allclose(found[0, : len(ids)], expected, rtol=1e-4)


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ([], "`models` has none"),
        ([3], "`models` must hold Keras models, found int"),
        ([keras.Sequential([keras.layers.Embedding(7, 7)])], "carries no states"),
        (
            [fixtures.language_model(), TransformerLanguageModel(9, 4, 1, 2, 3)],
            "of one vocabulary, found sizes",
        ),
    ],
)
def test_mistakes(models, message):
    with pytest.raises(ValueError, match=message):
        EnsembleLanguageModel(models)
