"""Data of latent-variable models: symbols, and sentences of about one length."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.data import SentenceBatches, UniformSymbols


def _rows(dataset) -> list[np.ndarray]:
    return [batch.numpy() for batch in dataset]


def test_symbols_are_uniform_and_a_function_of_seed_epoch_and_step():
    symbols = UniformSymbols(5, 400, 6, seed=3)
    first, second = _rows(symbols.dataset(0)), _rows(symbols.dataset(1))
    assert len(first) == 6 and first[0].shape == (400,)
    counts = np.bincount(np.concatenate(first), minlength=5) / 2400
    np.testing.assert_allclose(counts, 0.2, atol=4 * np.sqrt(0.16 / 2400))
    rest = _rows(symbols.dataset(tf.constant(1, tf.int64), tf.constant(4, tf.int64)))
    np.testing.assert_array_equal(rest, second[4:])
    flat = {batch.tobytes() for batch in first + second}
    assert len(flat) == 12
    other = _rows(UniformSymbols(5, 400, 6, seed=4).dataset(0))
    assert np.any(other[0] != first[0])


def _stream(rng, count=230):
    """Sentences of 1 to 12 words, the end, 0, included; the last one has no end."""
    parts = [np.append(rng.integers(1, 50, n), 0) for n in rng.integers(0, 12, count)]
    return np.concatenate([*parts, [7, 8]]), [*parts, np.array([7, 8])]


def test_sentences_come_once_an_epoch_with_others_of_their_length(rng):
    stream, parts = _stream(rng)
    batches = SentenceBatches(stream, 0, 8, 9, seed=2)
    expected = sorted(tuple(p[:9]) for p in parts)
    own = [tuple(row[row >= 0]) for row in batches.sentences]
    assert sorted(own) == expected
    assert batches.num_tokens == sum(map(len, expected))
    first, second = _rows(batches.dataset(0)), _rows(batches.dataset(1))
    assert len(first) == batches.steps == 231 // 8
    for epoch in (first, second):
        seen = [tuple(row[row >= 0]) for batch in epoch for row in batch]
        assert len(seen) == batches.steps * 8
        remaining = list(expected)
        for row in seen:
            remaining.remove(row)
        # No column is all padding, and little padding is needed.
        assert all((batch[:, -1] >= 0).any() for batch in epoch)
        padding = sum((batch < 0).sum() for batch in epoch)
        assert padding < 0.05 * sum(batch.size for batch in epoch)
    assert any(
        a.shape != b.shape or np.any(a != b) for a, b in zip(first, second, strict=True)
    )
    rest = _rows(batches.dataset(tf.constant(1, tf.int64), tf.constant(20, tf.int64)))
    for a, b in zip(rest, second[20:], strict=True):
        np.testing.assert_array_equal(a, b)
    # Not from short to long.
    lengths = [batch.shape[1] for batch in first]
    assert lengths != sorted(lengths)


def test_all_sentences_in_order_of_length(rng):
    stream, parts = _stream(rng)
    batches = SentenceBatches(stream, 0, 8, 9)
    rows = list(batches.in_order_of_length())
    seen = [tuple(row[row >= 0]) for batch in rows for row in batch]
    assert sorted(seen) == sorted(tuple(p[:9]) for p in parts)
    assert len(rows[-1]) == 231 % 8
    lengths = [len(row) for row in seen]
    assert lengths == sorted(lengths)


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="`num_symbols` must be an integer >= 1"):
        UniformSymbols(0, 1, 1)
    with pytest.raises(
        ValueError, match="at least `batch_size` = 4 sentences, found 2"
    ):
        SentenceBatches([1, 2, 0, 3, 0], 0, 4, 5)
    with pytest.raises(ValueError, match="`tokens` must be"):
        SentenceBatches([[1, 0]], 0, 1, 5)
