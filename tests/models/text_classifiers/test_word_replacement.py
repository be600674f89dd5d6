"""MLM-replace against a loop; a probe that learns from other words."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from rlm_tf.layers import TransformerEncoder
from rlm_tf.models import MaskedLanguageModel, SeedSupervision, replace_words
from rlm_tf.models.text_classifiers import seed_supervision, stages

_TOKENS = np.array([[2, 7, 8, 9, 10, 11, 3, 0], [2, 7, 3, 0, 0, 0, 0, 0]], np.int32)


@pytest.fixture(scope="module")
def model():
    return MaskedLanguageModel(
        TransformerEncoder(12, num_layers=1, width=4, num_heads=2, seed=1)
    )


def test_masked_pieces_are_the_likeliest_and_others_stay(model):
    found = replace_words(model, _TOKENS, ratio=0.6, seed=3)
    changed = found != _TOKENS
    assert not changed[:, 0].any() and not changed[_TOKENS < 5].any()
    # One piece stays, whatever the ratio.
    np.testing.assert_array_equal(found[1], _TOKENS[1])
    assert found.min() >= 0 and (found[_TOKENS >= 5] >= 5).all()
    # Which pieces were masked is not told; of all sets of three some gives this.
    count = min(math.ceil(0.6 * 5), 4)
    seen = []
    for places in itertools.combinations(range(1, 6), count):
        masked = _TOKENS[:1].copy()
        masked[0, list(places)] = 4
        logits = model(masked).numpy()[0]
        logits[:, :5] = -np.inf
        own = _TOKENS[0].copy()
        own[list(places)] = logits.argmax(axis=-1)[list(places)]
        seen.append(own.tolist())
    assert found[0].tolist() in seen


def test_draws_are_of_the_seed_and_the_place(model):
    tokens = np.tile(_TOKENS[:1], [9, 1])
    one = replace_words(model, tokens, ratio=0.5, seed=1)
    np.testing.assert_array_equal(
        one, replace_words(model, tokens, ratio=0.5, seed=1, batch_size=2)
    )
    assert replace_words(model, tokens[:0]).shape == (0, 8)
    with pytest.raises(ValueError, match=r"`tokens` must be \[N, T\]"):
        replace_words(model, tokens[0])


def test_a_probe_learns_from_other_words_and_judges_those_that_are_there(monkeypatch):
    tokens = np.arange(5, 17, dtype=np.int32).reshape(6, 2)
    labels = np.array([0, 1, 0, 1, -1, -1])
    seen = []

    def training(make, data, epochs, everything, folder, **options):
        batches = [x[0] for x, _ in data.source.in_order()]
        seen.append((np.concatenate(batches), everything))
        probs = np.full([len(everything), 2], 0.5, np.float32)
        watched = np.zeros([1, len(everything)])
        return None, stages.Said(probs, watched, watched)

    monkeypatch.setattr(seed_supervision, "train", training)
    procedure = SeedSupervision(lambda seed: None, iterations=0, fraction=1.0)
    procedure.fit(tokens, labels, probe_tokens=tokens + 20)
    learnt, judged = seen[0]
    np.testing.assert_array_equal(learnt, tokens[:4] + 20)
    np.testing.assert_array_equal(judged, tokens[:4])
    # What follows learns from the documents as they are.
    np.testing.assert_array_equal(seen[1][0], tokens[:4])
    with pytest.raises(ValueError, match="`probe_tokens` must be as many rows"):
        procedure.fit(tokens, labels, probe_tokens=tokens[:2])
