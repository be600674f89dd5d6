"""Restricted models of other contexts than words: of none, and of word classes."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.models import InBatchContexts, SampledContexts
from rlm_tf.restricted import WordClassModel
from tests.models.imm import imm_fixtures as fixtures

# Tracing takes longer than the few steps of most tests.
pytestmark = pytest.mark.eager

_CLASSES = np.array([0, 1, 0, 1, 2, 2, 0])


def _class_model() -> WordClassModel:
    return WordClassModel(fixtures.VOCABULARY, 3).fit(fixtures.stream(), _CLASSES)


def _probs(model, element) -> np.ndarray:
    """The language model's predictions, `[B * T, V]`."""
    (tokens, start), _, _ = element
    logits = model.model((tokens, start))
    return tf.nn.softmax(logits).numpy().reshape(-1, fixtures.VOCABULARY)


def test_the_unigram_is_matched_by_the_mean_of_all_predictions():
    unigram = fixtures.restricted_model(1)
    model = fixtures.eager(InBatchContexts(), restricted=unigram)
    element = fixtures.element()
    mean = _probs(model, element).mean(axis=0)
    target = unigram.probs(np.zeros((1, 0), np.int32)).numpy()[0]
    expected = -np.sum(target * np.log(mean))
    logs = fixtures.step(model, element)
    assert logs["imm"][0] == pytest.approx(expected, rel=1e-5)
    assert logs["imm_coverage"] == [1.0]
    assert logs["imm_count"] == [40.0]


def test_words_of_a_class_share_an_induced_model():
    restricted = _class_model()
    model = fixtures.eager(InBatchContexts(min_count=2), restricted=restricted)
    element = fixtures.element()
    words = np.array(element[0][0]).ravel()
    probs = _probs(model, element)
    losses = []
    for word in words:
        group = _CLASSES[words] == _CLASSES[word]
        if group.sum() >= 2:
            target = restricted.probs([word]).numpy()[0]
            losses.append(-np.sum(target * np.log(probs[group].mean(axis=0))))
    logs = fixtures.step(model, element)
    assert logs["imm"][0] == pytest.approx(np.mean(losses), rel=1e-5)


def test_several_restrictions_at_once():
    """Unigram, word class, bigram and trigram, one coefficient each."""
    restricted = [
        (fixtures.restricted_model(1), 0.1),
        (_class_model(), 0.2),
        (fixtures.restricted_model(2), 0.3),
        (fixtures.restricted_model(3), 0.4),
    ]
    model = fixtures.eager(InBatchContexts(min_count=1), restricted=restricted)
    element = fixtures.element()
    alone = []
    for each, _ in restricted:
        single = fixtures.eager(InBatchContexts(min_count=1), restricted=each)
        alone.append(fixtures.step(single, element)["imm"][0])
    logs = fixtures.step(model, element)
    found = [logs[f"imm_{index}"][0] for index in range(4)]
    np.testing.assert_allclose(found, alone, rtol=1e-5)
    total = logs["nll"][0] + np.dot([0.1, 0.2, 0.3, 0.4], alone)
    assert logs["loss"][0] == pytest.approx(total, rel=1e-5)


@pytest.mark.parametrize("kind", ["unigram", "classes"])
def test_sampled_contexts_of_coarse_contexts(kind):
    """Every draw ends in a word of the class, or in any word."""
    restricted = fixtures.restricted_model(1) if kind == "unigram" else _class_model()
    stream = fixtures.stream()
    contexts = SampledContexts(stream, k=3, window=4)
    model = fixtures.eager(contexts, restricted=restricted)
    (index,) = contexts.indices
    words = tf.constant([[0], [4], [5]]) if kind == "classes" else tf.zeros([3, 0])
    randoms = tf.constant(np.random.default_rng(0).integers(2**40, size=(3, 50)))
    wanted = restricted.coarse(words) if kind == "classes" else tf.cast(words, tf.int32)
    positions, counts = index.draw(wanted, randoms)
    if kind == "unigram":
        np.testing.assert_array_equal(counts, [len(stream) - 3] * 3)
        assert len(np.unique(positions)) > 50
    else:
        drawn = _CLASSES[stream[positions]]
        np.testing.assert_array_equal(drawn, np.tile([[0], [2], [2]], 50))
        assert counts[0] == np.sum(_CLASSES[stream[3:]] == 0)
    logs = fixtures.step(model, fixtures.element())
    assert np.isfinite(logs["imm"][0]) and logs["imm_coverage"] == [1.0]


def test_a_file_keeps_the_classes(tmp_path):
    model = fixtures.eager(InBatchContexts(), restricted=_class_model())
    loaded = fixtures.round_trip(model, tmp_path / "model.keras")
    words = np.arange(fixtures.VOCABULARY)
    (restricted,) = loaded.restricted_models
    np.testing.assert_array_equal(restricted.coarse(words), _CLASSES)
    np.testing.assert_array_equal(restricted.probs(words), _class_model().probs(words))
