"""Reverse perplexity: real text is best, words without order are worse."""

from __future__ import annotations

import numpy as np
import pytest

from rlm_tf.data import MarkovSource
from rlm_tf.evaluation import reverse_perplexity, unigram_text

pytestmark = pytest.mark.slow
_CHAIN = 0.04 + 0.84 * np.roll(np.eye(4), 1, axis=1)
_SOURCE = MarkovSource(_CHAIN)
_TEXT, _VALID, _TEST = (_SOURCE.sample(n, seed=n) for n in (3000, 500, 600))


_OPTIONS = {"vocabulary_size": 4, "prefix": 0, "units": 8, "most_epochs": 50}


@pytest.mark.landing
def test_order_counts():
    real = reverse_perplexity(_TEXT, _VALID, _TEST, **_OPTIONS)
    words = unigram_text(_TEXT, 3000, seed=1)
    unigram = reverse_perplexity(words, _VALID, _TEST, **_OPTIONS)
    # That of the chain itself; of words without order it is 4.
    exact = np.exp(-np.mean(np.log(_CHAIN[_TEST[:-1], _TEST[1:]])))
    assert 0.98 * exact < real.test < 1.15 * exact
    assert unigram.test == pytest.approx(4.0, abs=0.3)
    assert real.epochs <= 50


@pytest.mark.landing
def test_it_repeats():
    once = {**_OPTIONS, "most_epochs": 1}
    first, again = (reverse_perplexity(_TEXT, _VALID, _TEST, **once) for _ in range(2))
    assert first == again


def test_unigram_text_has_the_frequencies():
    text = np.repeat([0, 1, 2], [600, 300, 100])
    drawn = unigram_text(text, 20_000, seed=0)
    np.testing.assert_allclose(np.bincount(drawn) / 20_000, [0.6, 0.3, 0.1], atol=0.02)


def test_mistakes():
    options = {"vocabulary_size": 4, "prefix": 0}
    with pytest.raises(ValueError, match="at least 20 tokens, found 5"):
        reverse_perplexity(_TEXT[:5], _VALID, _TEST, **options)
    with pytest.raises(ValueError, match="`units` must be an integer >= 1"):
        reverse_perplexity(_TEXT, _VALID, _TEST, units=0, **options)
    with pytest.raises(ValueError, match="`length` must be an integer >= 1"):
        unigram_text(_TEXT, 0, seed=1)
