"""Short contexts of windows, their keys and groups, the index and the bank."""

from __future__ import annotations

import collections

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_tf.data.batches.context_index import ContextIndex
from rlm_tf.models.imm import short_contexts as contexts
from rlm_tf.models.imm.prediction_bank import PredictionBank


def test_short_contexts_are_the_last_words():
    tokens = tf.constant([[1, 2, 3], [4, 5, 6]])
    np.testing.assert_array_equal(
        contexts.short_contexts(tokens, 2)[0], [[1, 1], [1, 2], [2, 3]]
    )
    np.testing.assert_array_equal(
        contexts.whole_context(tokens, 2), [[False, True, True]] * 2
    )
    np.testing.assert_array_equal(
        contexts.short_contexts(tokens, 1)[..., 0], tokens.numpy()
    )


@given(st.integers(1, 4), st.integers(2, 300_000), st.data())
@settings(max_examples=30, deadline=None)
def test_keys_are_equal_exactly_for_equal_contexts(length, vocabulary, data):
    words = st.integers(0, vocabulary - 1)
    rows = data.draw(
        st.lists(st.lists(words, min_size=length, max_size=length), min_size=2)
    )
    keys = contexts.context_keys(tf.constant(rows), vocabulary).numpy()
    for a, row_a in zip(keys, rows, strict=True):
        for b, row_b in zip(keys, rows, strict=True):
            assert (a == b) == (row_a == row_b)


def test_groups_keep_members_and_context_together(rng):
    tokens = tf.constant(rng.integers(5, size=(3, 9)), tf.int32)
    all_contexts = contexts.short_contexts(tokens, 2)
    takes_part = contexts.whole_context(tokens, 2)
    rows, groups, keys = contexts.group_by_context(
        tf.reshape(contexts.context_keys(all_contexts, 5), [-1]),
        tf.reshape(takes_part, [-1]),
    )
    counts = np.bincount(groups, minlength=len(keys))
    flat = tf.reshape(all_contexts, [-1, 2])
    kept = contexts.keep_groups(rows, groups, flat, tf.constant(counts >= 2))
    expected = collections.Counter(
        tuple(flat.numpy()[i]) for i in range(27) if i % 9 != 0
    )
    found = {
        tuple(c): int(n)
        for c, n in zip(kept.contexts.numpy(), kept.counts, strict=True)
    }
    assert found == {c: n for c, n in expected.items() if n >= 2}
    np.testing.assert_array_equal(
        flat.numpy()[kept.rows], kept.contexts.numpy()[kept.groups]
    )


@pytest.mark.parametrize("length", [1, 2, 3])
def test_index_finds_every_occurrence(rng, length):
    stream = rng.integers(6, size=200)
    index = ContextIndex(stream, length, 6, min_position=4)
    wanted = np.array([stream[i : i + length] for i in range(150)] + [[5] * length])
    offset, count = index.look_up(tf.constant(wanted))
    for row, first, number in zip(wanted, offset.numpy(), count.numpy(), strict=True):
        expected = [
            end
            for end in range(max(4, length - 1), 200)
            if np.array_equal(stream[end - length + 1 : end + 1], row)
        ]
        assert sorted(index.positions[first : first + number]) == expected


def test_unseen_contexts_have_no_occurrence():
    index = ContextIndex(np.array([0, 1, 2, 0, 1]), 2, 7)
    _, count = index.look_up(tf.constant([[2, 1], [6, 6], [0, 1], [1, 0]]))
    np.testing.assert_array_equal(count, [0, 0, 2, 0])


def test_large_vocabularies_do_not_overflow():
    stream = np.array([266_999, 266_998, 266_997, 266_996, 1, 2, 266_999, 266_998])
    index = ContextIndex(stream, 4, 267_000)
    offset, count = index.look_up(tf.constant(stream[None, :4]))
    assert count.numpy() == [1]
    assert index.positions[offset.numpy()[0]] == 3


def test_draws_are_uniform(rng):
    """Chi-square over the occurrences of one context; and none of another's."""
    stream = rng.integers(4, size=60)
    index = ContextIndex(stream, 1, 4)
    draws = 20_000
    randoms = tf.random.stateless_uniform(
        [1, draws], seed=(1, 2), maxval=tf.int64.max, dtype=tf.int64
    )
    ends, count = index.draw(tf.constant([[2]]), randoms)
    occurrences = np.flatnonzero(stream == 2)
    assert count.numpy() == [len(occurrences)]
    observed = np.array([(ends.numpy() == end).sum() for end in occurrences])
    assert observed.sum() == draws
    expected = draws / len(occurrences)
    statistic = ((observed - expected) ** 2 / expected).sum()
    degrees = len(occurrences) - 1
    assert statistic < degrees + 4 * np.sqrt(2 * degrees)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros((2, 2), int), 1, 4), "must be a vector"),
        ((np.zeros(3, int), -1, 4), "`context_length` must be an integer >= 0"),
        ((np.zeros(3, int), 1, 4, 3), "has 3 ids; windows of 4"),
        ((np.full(3, 4), 1, 4), r"ids in \[0, 4\), found 4..4"),
    ],
)
def test_streams_that_do_not_fit_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        ContextIndex(*arguments)


def test_bank_gives_the_newest_entries_first():
    bank = PredictionBank(5, 1)
    bank.write(tf.constant([[0.0], [1.0], [2.0]]), tf.constant([7, 8, 7], tf.int64))
    bank.write(tf.constant([[3.0], [4.0], [5.0]]), tf.constant([7, 9, 9], tf.int64))
    np.testing.assert_array_equal(bank.keys, [7, 9, 9, 7, 8])
    draw = bank.draw(tf.constant([8, 6, 7], tf.int64), tf.constant([2, 2, 1]))
    np.testing.assert_array_equal(draw.groups, [0, 2])
    np.testing.assert_array_equal(draw.features[:, 0], [1.0, 3.0])
    np.testing.assert_array_equal(draw.counts, [1, 0, 1])


def test_empty_bank_and_empty_batch_are_fine():
    bank = PredictionBank(5, 2)
    draw = bank.draw(tf.constant([8, 6], tf.int64), tf.constant([2, 2]))
    np.testing.assert_array_equal(draw.counts, [0, 0])
    bank.write(tf.ones([3, 2]), tf.constant([1, 2, 3], tf.int64))
    draw = bank.draw(tf.zeros([0], tf.int64), tf.zeros([0], tf.int32))
    assert draw.features.shape == [0, 2]
