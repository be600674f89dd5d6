"""n-grams from both sides, against their definition and a chain of known truth."""

from __future__ import annotations

import numpy as np
import pytest

from rlm_tf.data.text.special_tokens import SpecialIds
from rlm_tf.evaluation import TwoSidedNGram
from rlm_tf.restricted import KneserNey

IDS = SpecialIds(0, 1, 2, 3, 4)
V = 8


def rows_of(rng, number, length):
    """A chain of the tokens 5 to 7, of which the next is likely the one after."""
    rows = np.full((number, length), IDS.cls, np.int32)
    rows[:, -1] = IDS.sep
    for row in rows:
        token = rng.integers(3)
        for place in range(1, length - 1):
            token = (token + (1 if rng.random() < 0.8 else rng.integers(3))) % 3
            row[place] = 5 + token
    return rows


def test_probabilities_are_the_product_of_both_sides(rng):
    rows = rows_of(rng, 40, 7)
    rows[3, 4:] = [IDS.sep, IDS.padding, IDS.padding]
    model = TwoSidedNGram(rows, IDS, V, order=2)
    stream = [int(t) for row in rows for t in row if t != IDS.padding]
    forward = KneserNey(2).fit(np.array(stream), V).with_floor(1e-6)
    backward = KneserNey(2).fit(np.array(stream[::-1]), V).with_floor(1e-6)
    counts = np.bincount(stream, minlength=V) + 1.0
    for row, column in ((0, 3), (3, 3), (5, 1), (6, 5)):
        before, behind = rows[row, column - 1], rows[row, column + 1]
        expected = (
            forward.probs_numpy(np.array([before]))[0]
            * backward.probs_numpy(np.array([behind]))[0]
            / (counts / counts.sum())
        )
        found = np.exp(model.log_probs(rows, [[row, column]])[0])
        np.testing.assert_allclose(found, expected / expected.sum(), rtol=1e-4)


def test_beyond_a_row_there_are_its_neighbours_in_the_text(rng):
    rows = rows_of(rng, 30, 6)
    model = TwoSidedNGram(rows, IDS, V, order=3)
    # Of the first word the one before [CLS] is the [SEP] of another row.
    padded = np.concatenate([[[IDS.sep]], rows[:1], [[IDS.cls]]], axis=1)
    np.testing.assert_allclose(
        model.log_probs(rows, [[0, 1], [0, 4]]),
        model.log_probs(padded, [[0, 2], [0, 5]]),
        rtol=1e-6,
    )


def test_a_masked_neighbour_ends_the_context(rng):
    rows = rows_of(rng, 60, 9)
    model, pairs = (TwoSidedNGram(rows, IDS, V, order=n) for n in (3, 2))
    place = [[0, 4]]
    expected = model.log_probs(rows, place)
    masked = rows[:1].copy()
    masked[0, 2] = IDS.mask
    found = model.log_probs(masked, place)
    assert not np.allclose(found, expected)
    # Before the place there is one token left that counts, whatever was before it.
    other = masked.copy()
    other[0, 1] = IDS.mask
    np.testing.assert_array_equal(model.log_probs(other, place), found)
    # With both neighbours hidden, those behind them count no more.
    masked[0, 3] = masked[0, 5] = IDS.mask
    changed = masked.copy()
    changed[0, [2, 6]] = [5, 6]
    np.testing.assert_array_equal(
        model.log_probs(changed, place), model.log_probs(masked, place)
    )
    # Of two hidden neighbours on each side a bigram has nothing either.
    masked[0, [2, 6]] = IDS.mask
    nothing = pairs.log_probs(masked, place)
    assert nothing.argmax() in (5, 6, 7)
    held = rows_of(rng, 20, 9)
    places = np.argwhere((held >= 5) & (np.arange(9) % 2 == 0))
    seen = np.where(np.arange(9) % 2 == 1, held, IDS.mask)
    hidden = np.where(held >= 5, IDS.mask, held)
    scores = [model.scores(held, places, read) for read in (None, seen, hidden)]
    losses = [found.cross_entropy for found in scores]
    assert losses[0] < losses[2] and losses[1] < losses[2]


def test_it_is_better_than_frequency_and_no_better_than_the_truth(rng):
    model = TwoSidedNGram(rows_of(rng, 300, 20), IDS, V)
    held = rows_of(rng, 50, 20)
    places = np.argwhere((held >= 5) & (np.arange(20) % 3 == 0))
    both, frequency = model.scores(held, places), model.unigram_scores(held, places)
    # Next to right with probability 0.8 + 0.2 / 3, on both sides independently.
    step = np.full((3, 3), 0.2 / 3)
    step[np.arange(3), (np.arange(3) + 1) % 3] += 0.8
    joint = step[:, :, np.newaxis] * step[np.newaxis] / 3
    given = joint / joint.sum(axis=1, keepdims=True)
    truth = -(joint * np.log(given)).sum()
    assert frequency.cross_entropy == pytest.approx(np.log(3), abs=0.2)
    assert both.cross_entropy == pytest.approx(truth, abs=0.1)
    assert both.accuracy > 0.8 > frequency.accuracy


def test_an_order_without_neighbours_is_refused():
    with pytest.raises(ValueError, match="order"):
        TwoSidedNGram(np.array([[2, 5, 3]]), IDS, V, order=1)
