"""Bags of words are scikit-learn's tf-idf times vectors, in value and gradient."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from sklearn.feature_extraction.text import TfidfVectorizer

from rlm_tf.labelling import WordList
from rlm_tf.labelling.seed_tokens import words_of
from rlm_tf.layers import TfidfBag

_TEXTS = ["a b a c", "b b d", "", "e whale", "whale", "c d e a b c d e a b"]


@pytest.mark.parametrize("sublinear", [True, False])
def test_it_is_tf_idf_times_vectors(sublinear):
    words = WordList(["a", "b", "c", "d", "e"])
    rows = words.rows(_TEXTS, 12)
    bag = TfidfBag(len(words), 3, sublinear=sublinear)
    bag.adapt(rows)
    vectoriser = TfidfVectorizer(
        analyzer=words_of, vocabulary=[*words.words], sublinear_tf=sublinear
    )
    features = vectoriser.fit_transform(_TEXTS).toarray()
    kernel = np.random.default_rng(0).normal(size=(len(words), 3))
    bag.kernel.assign(kernel)
    with tf.GradientTape() as tape:
        found = bag(tf.constant(rows))
        loss = tf.reduce_sum(found * [1.0, 2.0, -1.0])
    np.testing.assert_allclose(found, features @ kernel[2:], atol=1e-5)
    gradient = tf.convert_to_tensor(tape.gradient(loss, bag.kernel.value))
    expected = np.outer(features.sum(axis=0), [1.0, 2.0, -1.0])
    np.testing.assert_allclose(gradient[2:], expected, atol=1e-5)
    assert not np.any(gradient[:2])
    # In a graph whose sizes are not known, too.
    graph = tf.function(bag, input_signature=[tf.TensorSpec([None, None], tf.int32)])
    np.testing.assert_allclose(graph(tf.constant(rows[:, :10])), found, atol=1e-6)


def test_mistakes():
    with pytest.raises(ValueError, match="vocabulary_size"):
        TfidfBag(2, 3)
    with pytest.raises(ValueError, match="units"):
        TfidfBag(5, 0)
