"""Word classes, and the model that sees nothing else of the last word."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.restricted import WordClassModel, word_classes


def test_probabilities_by_hand():
    """Words 0..3, classes (0, 0, 1, 1).

    The stream 0 2 1 2 0 3 0 2: after class 0 come 2, 2, 3, 2; after class 1 come 1,
    0, 0. Counts 3, 1, 1, 2: D = 2 / (2 + 2 * 1) = 0.5.
    """
    model = WordClassModel(4, 2).fit([0, 2, 1, 2, 0, 3, 0, 2], [0, 0, 1, 1])
    unigram = np.array([3, 1, 3, 1]) / 8
    first = np.array([0, 0, 2.5, 0.5]) / 4 + 0.5 * 2 / 4 * unigram
    second = np.array([1.5, 0.5, 0, 0]) / 3 + 0.5 * 2 / 3 * unigram
    expected = [first, first, second, second]
    np.testing.assert_allclose(model.probs(np.arange(4)), expected, rtol=1e-6)
    np.testing.assert_array_equal(model.coarse(tf.constant([[3, 0]])), [[1, 0]])


def test_rows_sum_to_one_and_empty_classes_are_unigrams(rng):
    tokens = rng.integers(6, size=300)
    classes = [0, 2, 0, 2, 3, 3]
    model = WordClassModel(6, 5).fit(tokens, classes)
    np.testing.assert_allclose(np.exp(model.table).sum(axis=1), np.ones(5), rtol=1e-5)
    unigram = np.bincount(tokens, minlength=6) / 300
    np.testing.assert_allclose(np.exp(model.table[1]), unigram, rtol=1e-5)


def test_one_class_is_nearly_the_unigram(rng):
    tokens = rng.integers(6, size=5000)
    model = WordClassModel(6, 1).fit(tokens, np.zeros(6, int))
    unigram = np.bincount(tokens, minlength=6) / 5000
    np.testing.assert_allclose(model.probs([3])[0], unigram, atol=1e-3)


def test_classes_are_found(rng):
    """Twelve words of three kinds; what follows depends on the kind alone."""
    kinds = np.arange(12) % 3
    following = rng.dirichlet(np.full(12, 0.3), size=3)
    words = [0]
    while len(words) < 4000:
        words.append(int(rng.choice(12, p=following[kinds[words[-1]]])))
    common = np.bincount(words, minlength=12) >= 40
    found = word_classes(words, 12, 3, seed=1)
    assert found.dtype == np.int32 and found.shape == (12,)
    for kind in range(3):
        assert len(set(found[common & (kinds == kind)])) == 1
    assert len(set(found[common])) == len(set(kinds[common]))
    np.testing.assert_array_equal(found, word_classes(words, 12, 3, seed=1))
    # More classes say more: the held-out likelihood is best at the true number.
    model = WordClassModel(12, 3).fit(words[:3000], found)
    alone = WordClassModel(12, 1).fit(words[:3000], np.zeros(12, int))
    assert model.score(words[3000:]).mean() > alone.score(words[3000:]).mean() + 0.1


def test_mistakes():
    with pytest.raises(ValueError, match="`num_classes` must be at most"):
        WordClassModel(3, 4)
    model = WordClassModel(3, 2)
    with pytest.raises(ValueError, match=r"`classes` must be ids in \[0, 2\)"):
        model.fit([0, 1, 2], [0, 1, 2])
    with pytest.raises(ValueError, match="one entry a word, 3"):
        model.fit([0, 1, 2], [0, 1])
    with pytest.raises(ValueError, match="`num_classes` must be at most 3"):
        word_classes([0, 1, 2], 3, 4)
