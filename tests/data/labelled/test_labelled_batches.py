"""Rows of texts and pairs: by hand, what is cut, odd texts, graphs; orders."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.data import LabelledBatches, LabelledTexts, encoder_vocabulary, special_ids
from rlm_tf.data.labelled.encoded_rows import encoded_rows
from rlm_tf.training import ResumableBatches

_VOCABULARY = encoder_vocabulary("some words of a text\nand of another one\n" * 30, 300)
_IDS = special_ids(_VOCABULARY)
_TABLES = _VOCABULARY.graph_tables()
_TEXTS = ["some words", "a text\nof\t words ", "", "one", "[SEP] <eos>", "and " * 40]


def _by_hand(first, second, length):
    pieces = [
        _VOCABULARY.encode(" ".join(text.split())).tolist()
        for text in (first, second)
        if text is not None
    ]
    room = length - 1 - len(pieces)
    sizes = [len(part) for part in pieces]
    while sum(sizes) > room:
        # The longer one loses its last piece; of two alike the second.
        longer = int(len(sizes) > 1 and sizes[1] >= sizes[0])
        sizes[longer] -= 1
    row, segments = [2], [0]
    for number, (part, size) in enumerate(zip(pieces, sizes, strict=True)):
        row += [*part[:size], 3]
        segments += [number] * (size + 1)
    padding = [0] * (length - len(row))
    return row + padding, segments + padding, sizes != [len(p) for p in pieces]


@pytest.mark.parametrize("length", [6, 9, 30])
@pytest.mark.parametrize("pairs", [False, True])
def test_rows_by_hand(length, pairs):
    second = _TEXTS[::-1] if pairs else None
    found = encoded_rows(_TABLES, _IDS, tf.constant(_TEXTS), second, length)
    for row, text in enumerate(_TEXTS):
        expected = _by_hand(text, second[row] if pairs else None, length)
        assert found.tokens[row].numpy().tolist() == expected[0]
        assert found.segments[row].numpy().tolist() == expected[1]
        assert bool(found.cut[row]) == expected[2]
    traced = tf.function(lambda: encoded_rows(_TABLES, _IDS, _TEXTS, second, length))()
    for one, other in zip(found, traced, strict=True):
        np.testing.assert_array_equal(one, other)


def test_there_must_be_room():
    with pytest.raises(ValueError, match="`length` must be an integer >= 5, found 4"):
        encoded_rows(_TABLES, _IDS, tf.constant(["a"]), tf.constant(["b"]), 4)


def _data():
    return LabelledTexts(
        [f"text {n}" for n in range(10)], np.arange(10, dtype=np.int32) % 2, ("a", "b")
    )


def test_every_epoch_has_another_order():
    batches = LabelledBatches(_data(), _VOCABULARY, 12, 3, seed=2)
    assert batches.steps == 3 and not batches.cut.any()
    data = ResumableBatches(batches)
    epochs = []
    for epoch in (0, 1, 1):
        data.seek(epoch)
        epochs.append([*data.dataset.as_numpy_iterator()])
    for ((tokens, segments), labels), again in zip(epochs[1], epochs[2], strict=True):
        np.testing.assert_array_equal(tokens, again[0][0])
        assert tokens.shape == segments.shape == (3, 12) and labels.shape == (3,)
        for row, label in zip(tokens, labels, strict=True):
            place = np.flatnonzero((batches.tokens == row).all(1))[0]
            assert batches.labels[place] == label
    assert np.any(epochs[0][0][0][0] != epochs[1][0][0][0])
    whole = [*batches.in_order().as_numpy_iterator()]
    assert [len(labels) for _, labels in whole] == [3, 3, 3, 1]
    np.testing.assert_array_equal(
        np.concatenate([labels for _, labels in whole]), batches.labels
    )


def test_fewer_examples_than_a_batch_are_one():
    batches = LabelledBatches(_data(), _VOCABULARY, 12, 64)
    assert batches.batch_size == 10 and batches.steps == 1
    with pytest.raises(ValueError, match="there is no example"):
        LabelledBatches(_data().take([]), _VOCABULARY, 12, 64)
