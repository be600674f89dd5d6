"""Deletion of words in a graph, against loops; keys of draws; whole words of pieces."""

from __future__ import annotations

import collections
import itertools

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.data.labelled.document_batches import DocumentBatches
from rlm_tf.labelling import deletion_counts
from rlm_tf.layers.text.keyed_draws import keyed_uniforms
from rlm_tf.layers.text.word_deletion import WordDeletion
from rlm_tf.training import ResumableBatches


def _documents(number=60, length=9, seed=0):
    """Rows of ids from 1 on, of lengths 0 to `length`, padded with 0."""
    rng = np.random.default_rng(seed)
    tokens = rng.integers(1, 50, [number, length]).astype(np.int32)
    lengths = rng.integers(0, length + 1, number)
    tokens[np.arange(length) >= lengths[:, np.newaxis]] = 0
    return tokens, lengths


def _by_id(ids, words):
    return dict(zip(ids.numpy().tolist(), words.numpy().tolist(), strict=True))


# === Draws ===


def test_draws_depend_on_their_keys_alone():
    ids = tf.range(400)
    found = keyed_uniforms((3, 5), ids, 50).numpy()
    assert found.min() >= 0 and found.max() < 1
    turned = keyed_uniforms((3, 5), ids[::-1], 50).numpy()[::-1]
    np.testing.assert_array_equal(turned, found)
    np.testing.assert_array_equal(
        keyed_uniforms((3, 5), ids[7:8], 20)[0], found[7, :20]
    )
    for keys in ((3, 6), (4, 5), (5, 3)):
        assert not np.isin(keyed_uniforms(keys, ids, 50), found).mean() > 0.01
    # Uniform, and not correlated along rows, columns and keys: 20,000 draws.
    counts = np.histogram(found, 20, (0, 1))[0]
    assert ((counts - 1000) ** 2 / 1000).sum() < 50  # chi square, 19 degrees
    other = keyed_uniforms((3, 6), ids, 50).numpy()
    for a, b in (
        (found[:, 1:], found[:, :-1]),
        (found[1:], found[:-1]),
        (found, other),
    ):
        assert abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) < 5 / np.sqrt(a.size)
    # The reference sequence of SplitMix64 from the state 0, its 24 highest bits.
    first = keyed_uniforms((), tf.constant([0]), 1).numpy()[0, 0]
    assert first == np.float32(_splitmix(_splitmix(0)) >> 40) / 2**24


def _splitmix(state):
    mask = 2**64 - 1
    z = (state + 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


def test_splitmix_is_the_published_one():
    # The first outputs of the published program from the seed 1234567.
    state, found = 1234567, []
    for _ in range(2):
        found.append(_splitmix(state))
        state = (state + 0x9E3779B97F4A7C15) % 2**64
    assert found == [6457827717110365317, 3203168211198807973]


# === Random words ===


@pytest.mark.parametrize("ratio", [0.0, 0.07, 0.5, 0.9, 1.0])
def test_as_many_words_go_as_asked(ratio):
    tokens, lengths = _documents()
    deletion = WordDeletion(ratio, seed=1)
    ids = tf.range(len(tokens))
    kept, left = deletion.without(tf.constant(tokens), ids, 3)
    expected = lengths - deletion_counts(lengths, ratio)
    np.testing.assert_array_equal(left, expected)
    gone = deletion.deleted(tf.constant(tokens), ids, 3).numpy()
    for row, own, deleted in zip(kept.numpy(), tokens, gone, strict=True):
        rest = [
            word for word, out in zip(own, deleted, strict=True) if word and not out
        ]
        assert row.tolist() == rest + [0] * (len(own) - len(rest))


def test_all_sets_of_words_are_alike():
    tokens = np.tile(np.arange(1, 6, dtype=np.int32), [4000, 1])
    gone = WordDeletion(0.4, seed=2).deleted(tf.constant(tokens), tf.range(4000), 0)
    sets = collections.Counter(map(tuple, gone.numpy().tolist()))
    assert len(sets) == len([*itertools.combinations(range(5), 2)])
    assert all(abs(count - 400) < 5 * np.sqrt(400 * 0.9) for count in sets.values())


def test_epochs_differ_unless_they_are_to_be_alike():
    tokens, _ = _documents(40)
    labels = np.arange(40)

    def rows(batch_size, epoch, start=0, **options):
        data = ResumableBatches(
            DocumentBatches(tokens, labels, batch_size, seed=4),
            transform=WordDeletion(0.5, seed=1, **options),
        )
        data.seek(epoch, start)
        left = -(-40 // batch_size) - start
        found = {}
        for (words, ids), own in data.dataset.take(left):
            np.testing.assert_array_equal(ids, own)
            found |= dict(
                zip(ids.numpy().tolist(), words.numpy().tolist(), strict=True)
            )
        return found

    first = rows(16, 0)
    assert sorted(first) == [*range(40)]
    # By the document, whatever the batch, in a resumed epoch, too.
    assert rows(7, 0) == first
    rest = rows(16, 0, start=1)
    assert len(rest) == 24 and all(first[own] == words for own, words in rest.items())
    second = rows(16, 1)
    assert sum(first[own] != second[own] for own in first) > 15
    assert rows(16, 0, fixed=True) == rows(16, 1, fixed=True)


@pytest.mark.landing
def test_two_replicas_delete_what_one_does(two_replicas):
    tokens, _ = _documents(16)
    batches = DocumentBatches(tokens, np.arange(16), 8)
    transform = WordDeletion(0.5, seed=1)
    data = ResumableBatches(batches, transform=transform).dataset
    shared = two_replicas.experimental_distribute_dataset(data)
    found = {}
    for element in itertools.islice(shared, 2):
        (words, ids), _ = element
        for own, row in zip(words.values, ids.values, strict=True):
            found |= _by_id(row, own)
    expected = {}
    for (words, ids), _ in data.take(2):
        expected |= _by_id(ids, words)
    assert found == expected


# === Seeds ===


@pytest.mark.parametrize("seeds", ["alike", "kept", "first", "only"])
def test_what_becomes_of_seeds(seeds):
    tokens, lengths = _documents(200)
    places = np.random.default_rng(1).random(tokens.shape) < 0.2
    deletion = WordDeletion(0.5, places, seeds=seeds, seed=3)
    gone = deletion.deleted(tf.constant(tokens), tf.range(200), 0).numpy()
    own = places & (tokens > 0)
    assert not gone[tokens == 0].any()
    rest = lengths - own.sum(axis=1)
    if seeds == "only":
        np.testing.assert_array_equal(gone, own)
    elif seeds == "alike":
        np.testing.assert_array_equal(gone.sum(axis=1), deletion_counts(lengths, 0.5))
        assert 0.35 < gone[own].mean() < 0.6
    else:
        assert gone[own].all() if seeds == "first" else not gone[own].any()
        others = (gone & ~own).sum(axis=1)
        np.testing.assert_array_equal(others, deletion_counts(rest, 0.5))


def test_whole_words_of_pieces_go():
    tokens = np.array([[2, 5, 6, 7, 8, 9, 3, 0], [2, 5, 3, 0, 0, 0, 0, 0]], np.int32)
    # [CLS], three words of one, three and one pieces, [SEP].
    starts = np.array([[1, 1, 1, 0, 0, 1, 1, 0], [1, 1, 1, 0, 0, 0, 0, 0]], bool)
    places = np.zeros(tokens.shape, bool)
    places[0, 3] = True
    options = {"starts": starts, "spared": (2, 3)}
    only = WordDeletion(0.0, places, seeds="only", **options)
    kept, left = only.without(tf.constant(tokens), tf.range(2), 0)
    assert kept.numpy().tolist() == [[2, 5, 9, 3, 0, 0, 0, 0], [2, 5, 3, 0, 0, 0, 0, 0]]
    assert left.numpy().tolist() == [4, 3]
    seen = set()
    for epoch in range(30):
        deletion = WordDeletion(0.5, **options)
        rows, _ = deletion.without(tf.constant(tokens), tf.range(2), epoch)
        first, second = rows.numpy().tolist()
        # Two of three words go; the last one of a text stays.
        assert second == [2, 5, 3, 0, 0, 0, 0, 0]
        seen.add(tuple(word for word in first if word not in (0, 2, 3)))
    assert seen == {(5,), (6, 7, 8), (9,)}


def test_mistakes():
    with pytest.raises(ValueError, match="ratio"):
        WordDeletion(1.5)
    with pytest.raises(ValueError, match="`seeds='first'` needs `places`"):
        WordDeletion(0.5, seeds="first")
    with pytest.raises(ValueError, match=r"must be \[N, T\]: \[2\]"):
        WordDeletion(0.5, [True, False])
    with pytest.raises(ValueError, match=r"must be \[N, T\]: \[1, 2\], \[2, 2\]"):
        WordDeletion(0.5, [[True, False]], starts=np.ones([2, 2]))
    with pytest.raises(ValueError, match=r"`tokens` must be \[N, T\] and `labels`"):
        DocumentBatches([[1], [2]], [0], 1)
    with pytest.raises(ValueError, match=r"`weights` must be \[1\], found \[2\]"):
        DocumentBatches([[1]], [0], 1, weights=[1.0, 2.0])


def test_batches_of_documents():
    batches = DocumentBatches([[1], [2], [3]], [0, 1, 0], 2, weights=[1.0, 2.0, 3.0])
    assert batches.steps == 2
    found = [*batches.in_order()]
    (tokens, ids), labels, weights = found[1]
    assert tokens.numpy().tolist() == [[3]] and ids.numpy().tolist() == [2]
    assert labels.numpy().tolist() == [0] and weights.numpy().tolist() == [3.0]


def test_batches_of_some_documents():
    tokens, rows = np.arange(12).reshape(6, 2), [4, 1, 5]
    some = DocumentBatches(tf.constant(tokens), [1, 0, 1], 2, rows=rows, seed=3)
    same = DocumentBatches(tokens[rows], [1, 0, 1], 2, seed=3)
    for one, other in zip(some.dataset(2, 0), same.dataset(2, 0), strict=True):
        ((a, a_ids), a_labels), ((b, b_ids), b_labels) = one, other
        assert a.numpy().tolist() == b.numpy().tolist()
        assert a_ids.numpy().tolist() == b_ids.numpy().tolist()
        assert a_labels.numpy().tolist() == b_labels.numpy().tolist()
    with pytest.raises(ValueError, match="or as many as `rows`"):
        DocumentBatches(tokens, [0], 2, rows=rows)
