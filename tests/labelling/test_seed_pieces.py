"""Seeds in pieces of words: whole words, cut documents, the authors' lone pieces."""

from __future__ import annotations

import re

import numpy as np
import pytest

from rlm_tf.data import Vocabulary, encoder_vocabulary
from rlm_tf.data.text.tokenisation import EOS, UNK
from rlm_tf.labelling import SeedRule, seed_pieces
from rlm_tf.models import TextReader

_SEEDS = {"sea": ["ship", "high tide"], "wood": ["forest*", "tree"]}
_TEXTS = [
    "The ship, the SHIPS and high-tide.",
    "Forests of trees; a tree!",
    "nothing here",
    "",
]
_PIECES = (
    *(
        "<pad>",
        UNK,
        "[CLS]",
        EOS,
        "[MASK]",
        "the",
        "ship",
        "##s",
        "and",
        "high",
        "tide",
    ),
    *("forest", "of", "tree", "a", "nothing", "here", "-", ",", ".", ";", "!"),
)


def _word_pieces():
    return Vocabulary(_PIECES, "wordpiece-lower")


def _marked(vocabulary, rows, places):
    return [
        [vocabulary.tokens[i] for i in row[own].tolist()]
        for row, own in zip(rows, places, strict=True)
    ]


def test_whole_seeds_are_marked_and_words_begin():
    vocabulary = _word_pieces()
    rows = TextReader(vocabulary, 16).rows(_TEXTS).tokens
    found = seed_pieces(SeedRule(_SEEDS), vocabulary, rows)
    # `ships` is no seed, `forests` is one, of two pieces.
    assert _marked(vocabulary, rows, found.places) == [
        ["ship", "high", "-", "tide"],
        ["forest", "##s", "tree"],
        [],
        [],
    ]
    goes_on = np.isin(rows, [vocabulary.id_of("##s")])
    np.testing.assert_array_equal(found.starts, ~goes_on)
    own = seed_pieces(SeedRule(_SEEDS), vocabulary, rows, [1, 1, 0, -1])
    assert _marked(vocabulary, rows, own.places) == [
        *([], ["forest", "##s", "tree"], [], []),
    ]


def test_a_document_that_is_cut_has_the_seeds_that_are_left():
    vocabulary = _word_pieces()
    rows = TextReader(vocabulary, 5).rows(_TEXTS[:1]).tokens
    found = seed_pieces(SeedRule(_SEEDS), vocabulary, rows)
    assert _marked(vocabulary, rows, found.places) == [["ship"]]


def test_the_authors_mark_lone_pieces_too():
    vocabulary = _word_pieces()
    rows = TextReader(vocabulary, 16).rows(_TEXTS).tokens
    found = seed_pieces(
        SeedRule(_SEEDS), vocabulary, rows, [0, 1, 0, -1], variant="authors"
    )
    # `ship` of `ships` goes, and `high` were it alone.
    assert _marked(vocabulary, rows, found.places) == [
        ["ship", "ship", "high", "tide"],
        ["forest", "tree", "tree"],
        [],
        [],
    ]


def test_sentence_pieces():
    """Whatever the pieces are, what is marked spells the seeds."""
    text = ["the ship and the ships went high tide in the forests of a tree"] * 30
    vocabulary = encoder_vocabulary("\n".join(text), 290)
    rows = TextReader(vocabulary, 40).rows(_TEXTS).tokens
    found = seed_pieces(SeedRule(_SEEDS), vocabulary, rows)
    spelt = [
        re.sub(
            "<0x(..)>",
            lambda byte: chr(int(byte[1], 16)),
            "".join(own).replace("\u2581", ""),
        ).lower()
        for own in _marked(vocabulary, rows, found.places)
    ]
    assert spelt == ["shiphigh-tide", "foreststree", "", ""]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"labels": [0]}, r"`labels` \[N\], found \[4, 16\] and \[1\]"),
        ({"variant": "all"}, "`variant` must be one of"),
        ({"rule": SeedRule(_SEEDS, tokenisation="published")}, "tokenisation"),
        ({"vocabulary": Vocabulary(["a", EOS, UNK], "words")}, "encoder begins with"),
    ],
)
def test_mistakes(arguments, message):
    vocabulary = _word_pieces()
    rows = TextReader(vocabulary, 16).rows(_TEXTS).tokens
    given = {"rule": SeedRule(_SEEDS), "vocabulary": vocabulary, "tokens": rows}
    with pytest.raises(ValueError, match=message):
        seed_pieces(**{**given, **arguments})
