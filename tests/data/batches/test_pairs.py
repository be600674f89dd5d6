"""Pairs of sentences and segments beside windows: what is drawn, how often, where."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.data import SegmentPairs, SentencePairs, contiguous_batches
from rlm_tf.data.batches.text_pairs import drawn_offsets
from rlm_tf.objectives.raml import geometric_log_probs
from rlm_tf.training import ResumableBatches
from tests.references.bmi_reference import geometric_probs

# Sentence i has i + 1 words 10 i + 1, 10 i + 2, ...; a lone <eos> stands after the 2nd.
_SENTENCES = [[10 * i + j + 1 for j in range(i + 1)] + [0] for i in range(6)]
_TEXT = np.concatenate([*_SENTENCES[:2], [0], *_SENTENCES[2:]]).astype(np.int32)


def _drawn(pairs, steps=200):
    """The draws of several steps, rows of all of them together."""
    found = [pairs.draw(0, step) for step in range(steps)]
    return [np.concatenate(parts) for parts in zip(*found, strict=True)]


def _numbers(sentences):
    """Which sentence each is, by its first word."""
    return sentences[..., 0] // 10


# === Sentences ===


def test_sentences_are_cut_and_padded():
    pairs = SentencePairs(_TEXT, 0, 2, most_tokens=4)
    expected = [
        [1, 0, -1, -1],
        [11, 12, 0, -1],
        [21, 22, 23, 0],
        [31, 32, 33, 0],
        [41, 42, 43, 0],
        [51, 52, 53, 0],
    ]
    np.testing.assert_array_equal(pairs.sentences, expected)
    # The end of a text is the end of its last sentence.
    unended = SentencePairs(_TEXT[:-1], 0, 2, most_tokens=4)
    np.testing.assert_array_equal(unended.sentences, expected)


def test_pairs_are_neighbours_and_negatives_are_neither():
    pairs = SentencePairs(_TEXT, 0, 8, most_tokens=8, negatives=2, seed=5)
    x, second, negatives, y, log_proposals, offsets, weights = _drawn(pairs)
    first = _numbers(x)
    np.testing.assert_array_equal(_numbers(second), first + 1)
    np.testing.assert_array_equal(_numbers(y), first + 1 + offsets)
    assert np.all(weights == 1)
    counts = np.bincount(first, minlength=5)
    assert len(counts) == 5 and np.all(np.abs(counts / counts.sum() - 0.2) < 0.04)
    assert negatives.shape == (1600, 2, 8)
    for number, other in itertools.product(range(5), range(6)):
        share = np.mean(_numbers(negatives[first == number]) == other)
        expected = 0 if other in (number, number + 1) else 0.25
        assert share == pytest.approx(expected, abs=0.07 if expected else 0)
    expected = geometric_log_probs(offsets, 4 - first, rate=0.3)
    np.testing.assert_allclose(log_proposals, expected, rtol=1e-6)


def test_a_sentence_ends_with_its_document():
    text = np.array([1, 2, 0, 3, 4, 5, 6, 7, 0, 8, 0])
    pairs = SentencePairs(text, 0, 4, most_tokens=4, documents=[6, 0])
    expected = [[1, 2, 0, -1], [3, 4, 5, 0], [6, 7, 0, -1], [8, 0, -1, -1]]
    np.testing.assert_array_equal(pairs.sentences, expected)
    x, second, *_ = _drawn(pairs, 20)
    assert set(zip(x[:, 0], second[:, 0], strict=True)) == {(1, 3), (6, 8)}


def test_no_pair_crosses_documents():
    # The third sentence begins a document; the last is one alone.
    begins = [
        0,
        int(np.flatnonzero(_TEXT == 21)[0]),
        int(np.flatnonzero(_TEXT == 51)[0]),
    ]
    pairs = SentencePairs(_TEXT, 0, 8, most_tokens=8, documents=begins)
    assert pairs.num_pairs == 3
    x, second, negatives, y, *_ = _drawn(pairs, 60)
    found = set(zip(_numbers(x), _numbers(second), strict=True))
    assert found == {(0, 1), (2, 3), (3, 4)}
    assert set(_numbers(y[_numbers(x) == 2])) == {3, 4}
    assert set(_numbers(negatives[_numbers(x) == 3]).ravel()) == {0, 1, 2, 5}


@pytest.mark.parametrize("tail", ["renormalised", "clipped"])
@pytest.mark.parametrize("most", [0, 1, 5])
def test_offsets_have_the_probabilities_that_are_told(tail, most):
    """The inverse distribution function at the middles of many equal steps."""
    uniform = (np.arange(100_000) + 0.5) / 100_000
    found = drawn_offsets(
        tf.constant(uniform), tf.fill([100_000], most), rate=0.3, tail=tail
    )
    shares = np.bincount(found, minlength=most + 1) / 100_000
    np.testing.assert_allclose(shares, geometric_probs(0.3, most, tail), atol=2e-5)


def test_rate_one_is_the_next_sentence_alone():
    pairs = SentencePairs(_TEXT, 0, 8, most_tokens=8, rate=1.0)
    _, second, _, y, log_proposals, offsets, _ = _drawn(pairs, 5)
    np.testing.assert_array_equal(second, y)
    assert not offsets.any() and not log_proposals.any()


# === Segments ===


@pytest.mark.parametrize("gap", [0, 3])
def test_segments_with_a_gap(gap):
    """Of a text that counts, every segment's first token tells where it begins."""
    pairs = SegmentPairs(np.arange(40), 500, segment=4, gap=gap, negatives=2)
    x, second, negatives, y, log_proposals, offsets, _ = _drawn(pairs, 20)
    for pieces in (x, second, negatives, y):
        np.testing.assert_array_equal(np.diff(pieces, axis=-1), 1)
    first = x[:, 0]
    np.testing.assert_array_equal(second[:, 0], first + 4 + gap)
    np.testing.assert_array_equal(y[:, 0], second[:, 0] + 4 * offsets)
    most = (40 - first - 8 - gap) // 4
    assert np.all(offsets <= most)
    expected = geometric_log_probs(offsets, most, rate=0.3)
    np.testing.assert_allclose(log_proposals, expected, rtol=1e-6)
    begin = negatives[..., 0]
    apart = (begin + 4 <= first[:, None]) | (begin >= first[:, None] + 8 + gap)
    assert apart.all()
    # Every place that does not overlap is drawn.
    places = set(begin[first == first[0]].ravel())
    assert places == {
        place
        for place in range(37)
        if place + 4 <= first[0] or place >= first[0] + 8 + gap
    }
    assert set(first) == set(range(40 - 8 - gap + 1))


def test_a_text_with_just_room_for_three_segments():
    x, second, negatives, *_ = _drawn(SegmentPairs(np.arange(30), 4, segment=9), 40)
    np.testing.assert_array_equal(second[:, 0], x[:, 8] + 1)
    others = negatives[:, 0]
    assert np.all((others[:, 8] < x[:, 0]) | (others[:, 0] > second[:, 8]))
    # In the middle there is no room for the third.
    assert set(x[:, 0]) == {0, 1, 2, 3, 9, 10, 11, 12}


def test_the_authors_way_clips_offsets_and_not_their_probability():
    pairs = SentencePairs(_TEXT, 0, 8, most_tokens=8, seed=5, tail="infinite")
    x, _, _, y, log_proposals, offsets, _ = _drawn(pairs)
    most = 4 - _numbers(x)
    assert np.all(offsets <= most) and np.any(offsets == most)
    np.testing.assert_array_equal(_numbers(y), _numbers(x) + 1 + offsets)
    expected = np.log(0.3) + offsets * np.log(0.7)
    np.testing.assert_allclose(log_proposals, expected, rtol=1e-6)
    # All beyond the last is the last.
    last = np.mean((offsets == most)[_numbers(x) == 1])
    assert last == pytest.approx(0.7**3, abs=0.05)


def test_a_text_is_no_constant_of_every_use():
    text = np.tile(_TEXT, 3000)
    for pairs in (SentencePairs(text, 0, 2), SegmentPairs(text, 2, segment=4)):
        graph = tf.function(lambda step, pairs=pairs: pairs.draw(0, step))
        traced = graph.get_concrete_function(tf.constant(0))
        assert traced.graph.as_graph_def().ByteSize() < len(text)


def test_no_segment_crosses_documents():
    pairs = SegmentPairs(np.arange(60), 8, segment=4, documents=[0, 30])
    x, second, negatives, y, *_ = _drawn(pairs, 60)
    for pieces in (x, second, negatives.reshape(-1, 4), y):
        np.testing.assert_array_equal(pieces[:, 0] // 30, pieces[:, -1] // 30)
    np.testing.assert_array_equal(x[:, 0] // 30, second[:, 0] // 30)
    np.testing.assert_array_equal(x[:, 0] // 30, y[:, 0] // 30)


# === Beside windows ===


@pytest.mark.parametrize("kind", ["sentences", "segments"])
def test_draws_are_a_function_of_seed_epoch_and_step(kind):
    def make(seed):
        if kind == "sentences":
            return SentencePairs(_TEXT, 0, 4, most_tokens=8, seed=seed)
        return SegmentPairs(_TEXT, 4, segment=3, seed=seed)

    first = make(1).draw(2, 3)
    for found, expected in zip(make(1).draw(2, 3), first, strict=True):
        np.testing.assert_array_equal(found, expected)
    for other in (make(2).draw(2, 3), make(1).draw(3, 3), make(1).draw(2, 4)):
        assert any(
            np.any(found != expected)
            for found, expected in zip(other, first, strict=True)
        )


@pytest.mark.parametrize("rows", [1, 2, 4, 5])
def test_pairs_are_spread_over_the_rows_of_the_window(rows):
    """So that replicas share them out; what fills up has weight 0."""
    batches = contiguous_batches(np.arange(1, 41), rows, 4, prefix=0)
    pairs = SentencePairs(_TEXT, 0, 4, most_tokens=8)
    data = ResumableBatches(batches, transform=pairs)
    data.seek(1, 1)
    (tokens, start, found), *_ = next(iter(data.dataset))
    drawn = pairs.draw(1, 1)
    each = -(-4 // rows)
    assert tokens.shape == (rows, 4) and start.shape == (rows,)
    assert found.first.shape == (rows, each, 8)
    assert found.negatives.shape == (rows, each, 1, 8)
    np.testing.assert_array_equal(tf.reshape(found.first, [-1, 8])[:4], drawn.first)
    flat = np.reshape(found.weights, -1)
    np.testing.assert_array_equal(flat, np.arange(rows * each) < 4)
    np.testing.assert_array_equal(
        tf.reshape(found.first, [-1, 8])[4:], drawn.first[: rows * each - 4]
    )


# === Mistakes ===


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SentencePairs([1, 0, 2, 0, 0], 0, 2), "at least 3 sentences"),
        (lambda: SentencePairs([], 0, 2), "at least 3 sentences.*; found 0"),
        (lambda: SentencePairs(_TEXT, 0, 0), "`batch_size` must be an integer >= 1"),
        (lambda: SentencePairs(_TEXT, 0, 2, rate=0.0), "`rate` must lie in"),
        (lambda: SentencePairs(_TEXT, 0, 2, tail="cut"), "`tail` must be one of"),
        (lambda: SentencePairs(_TEXT, 0, 2, most_tokens=1), "`most_tokens` must be"),
        (
            lambda: SentencePairs(_TEXT, 0, 2, documents=range(len(_TEXT))),
            "no document has two sentences",
        ),
        (lambda: SegmentPairs(_TEXT, 2, segment=14), "room for two segments of 14"),
        (lambda: SegmentPairs(_TEXT, 2, segment=10), "and a third elsewhere"),
        (lambda: SentencePairs(_TEXT, 0, 2, rate=0.0), r"`rate` must lie in \(0, 1\]"),
        (lambda: SentencePairs(_TEXT, -1, 2), "`end_id` must be an integer >= 0"),
        (lambda: SentencePairs(_TEXT, 0, 2, documents=[0.5]), "whole numbers from 0"),
        (lambda: SentencePairs(_TEXT, 0, 2, documents=[-5]), "whole numbers from 0"),
        (lambda: SegmentPairs(_TEXT, 2, documents=[28]), "whole numbers from 0 to 27"),
        (lambda: SegmentPairs(_TEXT, 2, gap=-1), "`gap` must be an integer >= 0"),
    ],
)
def test_mistakes(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_window_of_unknown_rows_is_refused():
    source = tf.data.Dataset.from_tensor_slices(np.ones((5, 3), np.int32)).batch(2)
    element = source.map(lambda t: ((t, t[:, 0]), t, tf.cast(t, tf.float32)))
    pairs = SentencePairs(_TEXT, 0, 2)
    with pytest.raises(ValueError, match="a fixed number of rows"):
        ResumableBatches(element, steps=3, transform=pairs)
