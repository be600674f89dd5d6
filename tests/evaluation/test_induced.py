"""Tests of induced-model perplexity against full enumeration."""

from __future__ import annotations

import math

import keras
import numpy as np
import pytest

from rlm_tf.evaluation import induced_perplexity
from rlm_tf.restricted import KneserNey
from tests.references import evaluation as reference

# Tracing takes longer than the few steps of most tests.
pytestmark = pytest.mark.eager

V, EOS = 9, 3


@pytest.fixture(scope="module")
def train():
    # Token 8 never occurs, so contexts with it are unseen.
    return np.random.default_rng(1).integers(V - 1, size=50).astype(np.int32)


@pytest.fixture(scope="module")
def texts(train):
    rng = np.random.default_rng(2)
    return {
        "train": train,
        "valid": rng.integers(V, size=40).astype(np.int32),
        "test": rng.integers(V, size=15).astype(np.int32),
    }


@pytest.mark.parametrize("context_length", [1, 2, 3])
@pytest.mark.parametrize("window", [6, 100])
def test_equals_full_enumeration(model, predict, train, texts, context_length, window):
    found = induced_perplexity(
        model, train, texts, 1, window, prefix=EOS, context_length=context_length
    )
    assert list(found) == ["train", "valid", "test"]
    for name, text in texts.items():
        nats, scored, left_out = reference.induced_nats(
            predict, train.tolist(), text.tolist(), EOS, context_length
        )
        assert found[name].num_tokens == scored
        assert found[name].num_left_out == left_out
        assert found[name].nats_per_token == pytest.approx(nats, abs=1e-6)
        assert found[name].perplexity == pytest.approx(math.exp(nats), rel=2e-6)
    assert found["valid"].num_left_out > 0


def test_rows_only_change_what_a_row_start_sees(model, predict, train, texts):
    found = induced_perplexity(model, train, texts, 2, 7, prefix=EOS)

    def predict_in_row(read):
        # Row 1 starts with the input of token 25, with nothing before it.
        return predict(read[25:] if len(read) > 25 else read)

    for name, text in texts.items():
        nats, scored, _ = reference.induced_nats(
            predict_in_row, train.tolist(), text.tolist(), EOS, 1
        )
        assert found[name].num_tokens == scored
        assert found[name].nats_per_token == pytest.approx(nats, abs=1e-6)


def test_a_bigram_model_induces_itself(train, texts):
    """Its predictions do not depend on the extended context."""
    bigram = keras.Sequential([keras.layers.Embedding(V, V)])
    table = bigram.layers[0]
    table.build()
    restricted = KneserNey(order=2).fit(train, V)
    probs = restricted.probs(np.arange(V)).numpy()
    table.embeddings.assign(np.log(np.maximum(probs, 1e-30)))
    found = induced_perplexity(bigram, train, texts, 3, 5, prefix=EOS)
    score = restricted.score(train)
    assert found["train"].nats_per_token == pytest.approx(-score.mean(), rel=1e-5)
    assert found["train"].num_tokens == len(score)


def test_nothing_to_score(model, train):
    texts = {"empty": [], "short": [1], "unseen": [8, 8, 8]}
    found = induced_perplexity(model, train, texts, 1, 20, prefix=EOS)
    assert [r.num_tokens for r in found.values()] == [0, 0, 0]
    assert [r.num_left_out for r in found.values()] == [0, 0, 2]
    assert all(math.isnan(r.nats_per_token) for r in found.values())
    assert all(math.isnan(r.perplexity) for r in found.values())
    assert induced_perplexity(model, train, {}, 1, 20, prefix=EOS) == {}


def test_mistakes(model, train):
    with pytest.raises(ValueError, match=r"context_length.*0"):
        induced_perplexity(model, train, {}, 1, 5, prefix=EOS, context_length=0)
    for text, message in (
        ([1, 12], r"ids in \[0, 9\), found 1..12"),
        ([1, -1], r"ids in \[0, 9\), found -1..1"),
        ([1.5, 2.0], "integer ids, found dtype float64"),
    ):
        with pytest.raises(ValueError, match=rf"`texts\['a'\]` must be {message}"):
            induced_perplexity(model, train, {"a": text}, 1, 5, prefix=EOS)
    with pytest.raises(ValueError, match="must map names to token ids, found list"):
        induced_perplexity(model, train, [1, 2], 1, 5, prefix=EOS)
    # A model that does not tell its vocabulary.
    plain = keras.Sequential([keras.layers.Embedding(9, 2), keras.layers.Dense(9)])
    with pytest.raises(ValueError, match=r"token 12.*\[0, 9\)"):
        induced_perplexity(plain, train, {"a": [1, 12]}, 1, 5, prefix=EOS)
    with pytest.raises(ValueError, match="empty"):
        induced_perplexity(model, train[:0], {"a": [1, 2]}, 1, 5, prefix=EOS)
