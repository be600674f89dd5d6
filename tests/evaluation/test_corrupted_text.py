"""Text of a frozen generator: what is replaced, files, scores; pseudo-perplexity."""

from __future__ import annotations

import math

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.data import Masking, Segments, encoder_vocabulary, masked_count
from rlm_tf.evaluation import (
    CorruptedText,
    corrupt,
    detect,
    detection_scores,
    pseudo_perplexity,
)
from rlm_tf.layers import TransformerEncoder
from rlm_tf.models import Electra, MaskedLanguageModel
from rlm_tf.models.encoders.electra import drawable

_TEXT = "some words of a text\nand of another one\n\n" * 12
_VOCABULARY = encoder_vocabulary(_TEXT, 290)
_SEGMENTS = Segments(_TEXT, _VOCABULARY, 14, 4)


def _encoder(**options):
    sizes = {"num_layers": 1, "width": 4, "num_heads": 2, "initializer_range": 0.5}
    return TransformerEncoder(len(_VOCABULARY), **{**sizes, **options})


def _corrupted(seed=0, generator=None, **options):
    generator = generator or MaskedLanguageModel(_encoder())
    return corrupt(generator, _SEGMENTS, Masking(_VOCABULARY), seed, **options)


def test_masked_tokens_alone_are_replaced_and_always_the_same():
    text = _corrupted()
    np.testing.assert_array_equal(text.original, _SEGMENTS.tokens)
    np.testing.assert_array_equal(text.padding, text.original == 0)
    np.testing.assert_array_equal(text.labels, text.tokens != text.original)
    masked = masked_count((~text.padding).sum(1), length=14)
    # A generator that knows nothing is hardly ever right.
    assert np.all(text.labels.sum(1) <= masked)
    assert text.labels.sum() > 0.8 * masked.sum()
    assert not np.any(text.labels & (text.original < 5))
    for one, other in zip(text, _corrupted(batch_size=5), strict=True):
        np.testing.assert_array_equal(one, other)
    assert np.any(text.tokens != _corrupted(seed=1).tokens)


def test_a_file_keeps_it(tmp_path):
    text = _corrupted()
    text.save(tmp_path / "a.npz")
    for one, other in zip(text, CorruptedText.load(tmp_path / "a.npz"), strict=True):
        np.testing.assert_array_equal(one, other)
    assert [path.name for path in tmp_path.iterdir()] == ["a.npz"]
    (tmp_path / "b.npz").write_bytes(b"nothing")
    with pytest.raises(ValueError, match="is no corrupted text"):
        CorruptedText.load(tmp_path / "b.npz")


def test_scores_of_a_detector():
    text = _corrupted()
    model = Electra(_encoder(), _encoder(seed=1))
    counts = np.bincount(_SEGMENTS.tokens.ravel(), minlength=len(_VOCABULARY))
    found = detect(model, text, counts=counts, groups=3, batch_size=5)
    logits = model(text.tokens).numpy().astype(np.float64)
    probs = 1 / (1 + np.exp(-logits))
    assert found.scores == detection_scores(probs, text.labels, text.padding)
    right = np.where(text.labels, probs, 1 - probs)[~text.padding]
    assert found.cross_entropy == pytest.approx(-np.log(right).mean(), rel=1e-5)
    # Groups of one size; together they have all that is right.
    accuracy = [scores.accuracy for scores in found.by_frequency]
    assert len(accuracy) == 3
    assert np.mean(accuracy) == pytest.approx(found.scores.accuracy, abs=0.01)
    assert detect(model, text).by_frequency == []


def test_pseudo_perplexity_by_loops():
    model = MaskedLanguageModel(_encoder())
    rows = _SEGMENTS.tokens[:2]
    losses = []
    for row in rows:
        for place in np.flatnonzero(row >= 5):
            shown = row.copy()
            shown[place] = 4
            logits = model(shown[None])[0, place].numpy().astype(np.float64)
            losses.append(math.log(np.exp(logits).sum()) - logits[row[place]])
    found = pseudo_perplexity(model, rows, _SEGMENTS.ids, batch_size=7)
    assert found == pytest.approx(math.exp(np.mean(losses)), rel=1e-5)
    two = MaskedLanguageModel(_encoder(num_segments=2))
    segments = np.zeros_like(rows)
    segments[:, 5:] = 1
    with_them = pseudo_perplexity(two, rows, _SEGMENTS.ids, segments=segments)
    assert with_them != pytest.approx(
        pseudo_perplexity(two, rows, _SEGMENTS.ids), rel=1e-4
    )
    with pytest.raises(ValueError, match="have none that counts"):
        pseudo_perplexity(model, np.array([[2, 3, 0]]), _SEGMENTS.ids)


def test_padding_is_never_drawn():
    text = _corrupted(generator=MaskedLanguageModel(_encoder(initializer_range=1e-6)))
    # Any other word is as likely as each.
    assert text.labels.any()
    assert not (text.tokens[text.labels] == _SEGMENTS.ids.padding).any()
    drawn = drawable(tf.zeros([2, 4], tf.float16), 1)
    assert tf.nn.softmax(drawn).numpy()[:, 1].tolist() == [0, 0]


def test_second_texts_count_where_the_encoder_knows_them(tmp_path):
    segments = Segments(_TEXT, _VOCABULARY, 14, 4, two_texts=True, seed=1)
    assert segments.segments.any()
    generator = MaskedLanguageModel(_encoder(num_segments=2))
    text = corrupt(generator, segments, Masking(_VOCABULARY), 0)
    np.testing.assert_array_equal(text.segments, segments.segments)
    text.save(tmp_path / "text.npz")
    np.testing.assert_array_equal(
        CorruptedText.load(tmp_path / "text.npz").segments, text.segments
    )
    model = Electra(_encoder(num_segments=2), _encoder(num_segments=2))
    logits = model((text.tokens, text.segments)).numpy().astype(np.float64)
    losses = np.logaddexp(0, logits) - text.labels * logits
    found = detect(model, text)
    assert found.cross_entropy == pytest.approx(losses[~text.padding].mean(), rel=1e-5)
    without = detect(model, text._replace(segments=None))
    assert without.cross_entropy != pytest.approx(found.cross_entropy, rel=1e-4)
    plain = corrupt(MaskedLanguageModel(_encoder()), segments, Masking(_VOCABULARY), 0)
    assert plain.segments is None
