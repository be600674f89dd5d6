"""Scoring of many texts by a model without states."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.generation.stepwise import as_stepwise
from rlm_tf.serving.scoring import token_log_probs

VOCABULARY, CONTEXT = 6, 8


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


@pytest.mark.parametrize("texts", [[], [[]], [[], []]])
def test_nothing_to_score(texts):
    model = as_stepwise(keras.Sequential([keras.layers.Embedding(3, 3)]), 4)
    tokens = tf.ragged.constant(texts, tf.int32, ragged_rank=1)
    assert token_log_probs(model, tokens, 0, 3).shape == (len(texts), 0)
