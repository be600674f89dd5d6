"""Scoring of many texts by a model without states."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.generation.stepwise import as_stepwise
from rlm_tf.layers import LSTMCell
from rlm_tf.models import RecurrentLanguageModel, RegularizedLanguageModel
from rlm_tf.objectives import linear_log_probs, linear_softmax
from rlm_tf.serving import scoring
from rlm_tf.serving.scoring import token_log_probs

VOCABULARY, CONTEXT = 6, 8


@pytest.mark.landing
def test_numbers_do_not_depend_on_the_other_texts(rng):
    """A token sees half of the context at least, and as much in a crowd as alone."""
    keras.utils.set_random_seed(4)
    layers = [
        keras.layers.Embedding(VOCABULARY, 5, embeddings_initializer="normal"),
        keras.layers.Conv1D(VOCABULARY, CONTEXT, padding="causal"),
    ]
    model = as_stepwise(keras.Sequential(layers), CONTEXT)
    texts = [rng.integers(VOCABULARY, size=n) for n in (19, 3, 0, 12, 8)]
    crowd = texts + [texts[3]] * 4200
    tokens = tf.ragged.constant(crowd, tf.int32)
    together = token_log_probs(model, tokens, 0, VOCABULARY)
    assert together.shape == (4205, 19)
    for row, text in enumerate(texts):
        tokens = tf.ragged.constant([text], tf.int32)
        alone = token_log_probs(model, tokens, 0, VOCABULARY)
        np.testing.assert_allclose(together[row, : len(text)], alone[0], atol=1e-5)
        np.testing.assert_array_equal(together[row, len(text) :], 0)
    np.testing.assert_allclose(together[5:], together[3][tf.newaxis] + 0 * together[5:])


class WholeRows:
    """A model that only gives whole rows of logits."""

    def __init__(self, model):
        self.zero_states = model.zero_states
        self.forward = model.forward
        self.output_logits = model.output_logits


@pytest.mark.parametrize(
    "options",
    [
        {"tied": True},
        {"tied": False, "mixture_components": 2},
        {"tied": False, "mixture_components": 3, "dtype": "mixed_bfloat16"},
    ],
)
def test_a_vocabulary_is_passed_slice_by_slice(monkeypatch, rng, options):
    """Memory does not grow with V, and numbers are those of whole rows."""
    widths = []

    def logits_of(x, kernel, biases):
        widths.append(int(kernel.shape[0]))
        return linear_softmax.logits_of(x, kernel, biases)

    monkeypatch.setattr(linear_log_probs, "_WORDS", 8)
    monkeypatch.setattr(linear_log_probs, "logits_of", logits_of)
    model = RegularizedLanguageModel(27, LSTMCell(5), 1, seed=3, **options)
    for variable in model.trainable_variables:
        variable.assign(variable * 4.0)
    texts = [rng.integers(27, size=n) for n in (9, 0, 4)]
    tokens = tf.ragged.constant(texts, tf.int32)
    found = token_log_probs(model, tokens, 0, 27)
    assert set(widths) == {7, 6}
    expected = token_log_probs(WholeRows(model), tokens, 0, 27)
    assert found.dtype == tf.float32
    np.testing.assert_allclose(found, expected, atol=2e-6, rtol=2e-6)


def test_few_whole_rows_of_a_large_vocabulary_are_held(monkeypatch, rng):
    seen = []

    class Spy(WholeRows):
        def __init__(self, model):
            super().__init__(model)
            self.output_logits = lambda features: (
                seen.append(features.shape[1]),
                model.output_logits(features),
            )[1]

    monkeypatch.setattr(scoring, "_LOGITS", 80)
    model = RecurrentLanguageModel(20, 4, 1)
    tokens = tf.ragged.constant([rng.integers(20, size=11)], tf.int32)
    token_log_probs(Spy(model), tokens, 0, 20)
    assert seen == [4, 4, 4]


@pytest.mark.parametrize("texts", [[], [[]], [[], []]])
def test_nothing_to_score(texts):
    model = as_stepwise(keras.Sequential([keras.layers.Embedding(3, 3)]), 4)
    tokens = tf.ragged.constant(texts, tf.int32, ragged_rank=1)
    assert token_log_probs(model, tokens, 0, 3).shape == (len(texts), 0)
