"""Words of documents: ids, rows, files, places of seeds."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_tf.labelling import SeedRule, WordList, seed_places
from rlm_tf.layers.text.words import WordTable

_TEXTS = ["The ship, the sea.", "a ship!", "Don't sail: the END"]


def test_words_of_most_documents_come_first(tmp_path):
    words = WordList.build(_TEXTS, min_documents=1)
    assert words.words == ("ship", "the", "a", "don't", "end", "sail", "sea")
    assert len(words) == 9 and words.ids_of("Sea the whale") == [8, 3, 1]
    assert WordList.build(_TEXTS).words == ("ship", "the")
    assert WordList.build(_TEXTS, min_documents=1, max_size=3).words == (
        *("ship", "the", "a"),
    )
    rows = words.rows(_TEXTS, 3)
    assert rows.tolist() == [[3, 2, 3], [4, 2, 0], [5, 7, 3]] and rows.dtype == np.int32
    words.save(tmp_path / "words.json")
    assert WordList.load(tmp_path / "words.json") == words
    (tmp_path / "words.json").write_text("{}")
    with pytest.raises(ValueError, match=r"words\.json is no list of words"):
        WordList.load(tmp_path / "words.json")


@settings(max_examples=60, deadline=None)
@given(texts=st.lists(st.text(max_size=30), max_size=3))
def test_tables_have_the_same_rows(texts):
    words = WordList.build(_TEXTS, min_documents=1)
    table = WordTable(words)
    texts = [*texts, *_TEXTS]
    data = [text.encode("utf-8", "surrogatepass") for text in texts]
    found = table.rows(tf.constant(data), 4)
    np.testing.assert_array_equal(found, words.rows(texts, 4))
    longest = max(len(words.ids_of(text)) for text in texts)
    np.testing.assert_array_equal(
        table.rows(tf.constant(data)), words.rows(texts, longest)
    )
    assert table.rows(tf.constant(["", ""])).shape == (2, 1)


def test_places_of_seeds():
    rule = SeedRule({"sea": ["ship", "sea"], "end": ["the end", "sail", "ship"]})
    texts = ["a ship on the sea", "sail to the end", "nothing"]
    found = seed_places(rule, texts, 5)
    assert found.astype(int).tolist() == [
        [0, 1, 0, 0, 1],
        [1, 0, 1, 1, 0],
        [0, 0, 0, 0, 0],
    ]
    # Classes are sorted: 0 is `end`, 1 is `sea`.
    own = seed_places(rule, texts, 3, [0, 1, -1])
    assert own.astype(int).tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 0]]


def test_mistakes():
    with pytest.raises(ValueError, match="there is no word"):
        WordList([])
    with pytest.raises(ValueError, match="'a' appears twice"):
        WordList(["a", "a"])
    for word in ("two words", "Ship", "!"):
        with pytest.raises(ValueError, match="is no single word in lower case"):
            WordList([word])
    with pytest.raises(ValueError, match="no word is in 2 documents"):
        WordList.build(["a", "b"])
    rule = SeedRule({"a": ["b"], "c": ["d"]}, tokenisation="published")
    with pytest.raises(ValueError, match="tokenisation of the rule"):
        seed_places(rule, ["a"], 3)
    with pytest.raises(ValueError, match=r"1 texts need so many labels, found \[2\]"):
        seed_places(SeedRule({"a": ["b"], "c": ["d"]}), ["a"], 3, [0, 1])
