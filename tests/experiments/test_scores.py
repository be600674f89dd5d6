"""Bits per byte and perplexity per word of the studies' rows."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.kit.scores import comparable, line_of
from rlm_tf.data import Corpus, load_corpus
from rlm_tf.evaluation import perplexity_of


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return load_corpus()


def test_they_are_those_of_the_library(corpus):
    log_probs = -np.abs(np.random.default_rng(1).normal(3.0, 1.0, len(corpus.test)))
    assert corpus.num_bytes is not None and corpus.num_words is not None
    expected = perplexity_of(log_probs, corpus.num_bytes.test, corpus.num_words.test)
    found = comparable(corpus, {"test": expected.perplexity})
    assert found["bits_per_byte"]["test"] == pytest.approx(expected.bits_per_byte)
    assert found["perplexity_per_word"]["test"] == pytest.approx(
        expected.perplexity_per_word
    )


def test_what_diverged_or_is_too_large_has_none(corpus):
    found = comparable(corpus, {"valid": None, "test": 1e290})
    assert found["bits_per_byte"]["valid"] is None
    assert found["perplexity_per_word"] == {"valid": None, "test": None}
    line = line_of("model", {"valid": None, "test": 2.5}, found)
    assert line.startswith("model: perplexity valid diverged, test 2.50 (")


def test_texts_of_unknown_size_have_perplexity_only(corpus):
    tokens = corpus.test
    bare = Corpus("bare", tokens, tokens, tokens, corpus.vocabulary)
    assert comparable(bare, {"test": 2.0}) == {}
    assert line_of("model", {"test": 2.0}, {}) == "model: perplexity test 2.00"
