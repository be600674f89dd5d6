"""Masked tokens: the oracle's counts, shares of what is shown, whole words, seeds."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.data import mask_tokens, masked_count, max_masked
from tests.references.transformers_reference import ORACLE

_CASE = ORACLE["masked_count"]
_IDS = {"mask_id": 4, "vocabulary_size": 30}


def _texts(rows, length, seed=0):
    """Rows of [CLS] (2), pieces from 5 on, [SEP] (3), and padding (0)."""
    rng = np.random.default_rng(seed)
    tokens = rng.integers(5, 30, [rows, length])
    tokens[:, 0] = 2
    ends = rng.integers(length // 2, length, rows)
    tokens[np.arange(rows), ends] = 3
    tokens[np.arange(length) > ends[:, None]] = 0
    return tokens, (tokens == 2) | (tokens == 3), tokens == 0


def test_counts_of_the_oracle():
    for key, most in _CASE["max_predictions"].items():
        length, ratio = key.split(",")
        assert max_masked(int(length), ratio=float(ratio)) == most
    for row in _CASE["rows"]:
        options = {"length": row["length"], "ratio": row["ratio"]}
        assert masked_count(row["num_tokens"], **options) == row["count"]
    # Halves are rounded to even: 1.5 and 4.5.
    assert masked_count(np.array([10, 30, 0]), length=128).tolist() == [2, 4, 1]


def test_as_many_as_counted_are_masked_and_nothing_special():
    tokens, special, padding = _texts(40, 32)
    found = mask_tokens(tokens, special, padding=padding, **_IDS, seed=1)
    positions, shown = found.positions.numpy(), found.tokens.numpy()
    present = (~padding).sum(1)
    assert positions.sum(1).tolist() == masked_count(present, length=32).tolist()
    assert not np.any(positions & (special | padding))
    assert np.all(shown[positions] == 4)
    np.testing.assert_array_equal(shown[~positions], tokens[~positions])
    assert found.tokens.dtype == tf.int64


def test_every_position_is_masked_as_often():
    tokens = np.full([4000, 10], 7)
    special = np.zeros([4000, 10], bool)
    special[:, 0] = True
    found = mask_tokens(tokens, special, **_IDS, ratio=0.3, seed=5)
    share = found.positions.numpy().mean(0)
    # Three of nine; five standard errors.
    np.testing.assert_allclose(share[1:], 1 / 3, atol=5 * (2 / 9 / 4000) ** 0.5)
    assert share[0] == 0


@pytest.mark.parametrize(
    ("scheme", "masked", "drawn"), [("electra", 0.85, 0.0), ("bert", 0.8, 0.1)]
)
def test_shares_of_what_is_shown(scheme, masked, drawn):
    tokens = np.full([2000, 20], 7, np.int32)
    special = np.zeros(tokens.shape, bool)
    found = mask_tokens(tokens, special, **_IDS, scheme=scheme, seed=3)
    shown = found.tokens.numpy()[found.positions.numpy()]
    number = len(shown)
    counts = np.bincount(shown, minlength=30) / number
    expected = np.full(30, drawn / 30)
    expected[4] += masked
    expected[7] += 1 - masked - drawn
    errors = np.sqrt(expected * (1 - expected) / number)
    assert np.all(np.abs(counts - expected) <= 5 * errors)
    assert found.tokens.dtype == tf.int32


def test_a_seed_repeats_and_rows_do_not_depend_on_others():
    tokens, special, padding = _texts(6, 16)

    def draw(rows, seed):
        return mask_tokens(
            tokens[:rows],
            special[:rows],
            padding=padding[:rows],
            **_IDS,
            scheme="bert",
            seed=seed,
        )

    for one, other in zip(draw(6, 1), draw(6, np.array([1, 0])), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(draw(6, 1).positions[:2], draw(2, 1).positions)
    assert np.any(draw(6, 1).positions.numpy() != draw(6, 2).positions.numpy())
    traced = tf.function(lambda: draw(6, 1))()
    np.testing.assert_array_equal(traced.positions, draw(6, 1).positions)


def test_whole_words_are_masked_as_far_as_they_fit():
    rng = np.random.default_rng(2)
    tokens, special, padding = _texts(300, 24, seed=2)
    starts = rng.random(tokens.shape) < 0.5
    found = mask_tokens(
        tokens, special, padding=padding, word_starts=starts, **_IDS, seed=4
    ).positions.numpy()
    counts = masked_count((~padding).sum(1), length=24)
    word = np.maximum(np.cumsum(starts, 1) - 1, 0)
    whole = 0
    for row, count in enumerate(counts):
        candidates = ~(special | padding)[row]
        chosen = found[row].sum()
        assert 1 <= chosen <= count
        parts = [
            (found[row][candidates & (word[row] == w)].mean())
            for w in np.unique(word[row][candidates])
        ]
        cut = [part for part in parts if 0 < part < 1]
        # A word is cut only where it is alone and too long.
        assert not cut or (len(cut) == 1 and chosen == count and 1 not in parts)
        whole += not cut
    assert whole > 200


def test_rows_without_words():
    tokens = np.array([[2, 3, 0, 0], [2, 9, 3, 0]])
    special, padding = (tokens == 2) | (tokens == 3), tokens == 0
    found = mask_tokens(tokens, special, padding=padding, **_IDS, seed=0)
    assert found.tokens.numpy().tolist() == [[2, 3, 0, 0], [2, 4, 3, 0]]
    with pytest.raises(ValueError, match="all tokens are special or padding"):
        mask_tokens(tokens[:1], special[:1], padding=padding[:1], **_IDS, seed=0)
    # Of no rows there is nothing to complain of.
    none = mask_tokens(tokens[:0], special[:0], padding=padding[:0], **_IDS, seed=0)
    assert none.positions.shape == (0, 4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mask_id": 30}, "`mask_id` must be below `vocabulary_size`, 30, found 30"),
        ({"ratio": 1.0}, r"`ratio` must lie in \(0, 1\), found 1.0"),
        ({"scheme": "all"}, "`scheme` must be one of mask, electra, bert"),
        ({"special": np.zeros([2, 3], bool)}, "axis B of `special` is 2, expected 1"),
        ({"tokens": np.ones([1, 3])}, "`tokens` must be integer ids"),
    ],
)
def test_mistakes(options, message):
    arguments = {
        "tokens": np.ones([1, 3], np.int32),
        "special": np.zeros([1, 3], bool),
        **_IDS,
        "seed": 0,
        **options,
    }
    with pytest.raises(ValueError, match=message):
        mask_tokens(**arguments)


def test_mistakes_of_counts():
    with pytest.raises(ValueError, match="`length` must be an integer >= 1, found 0"):
        max_masked(0)
    with pytest.raises(ValueError, match="`num_tokens` must be integers >= 0"):
        masked_count(-1, length=8)
