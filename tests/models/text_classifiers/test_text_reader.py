"""Readers of documents: rows in Python and in a graph, configs, mistakes."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.data import encoder_vocabulary
from rlm_tf.labelling import WordList
from rlm_tf.models import TextReader

_TEXTS = ["The ship, the sea and the ship", "", "a ship\nsails", "\ud800 whale"]
_PIECES = encoder_vocabulary("the ship sails on the sea\n" * 40, 280)


@pytest.fixture(params=["words", "pieces"])
def reader(request):
    words = WordList.build(_TEXTS, min_documents=1)
    return TextReader(words if request.param == "words" else _PIECES, 6)


def test_graphs_and_python_agree(reader):
    rows = reader.rows(_TEXTS)
    assert rows.tokens.shape == (4, 6) and rows.tokens.dtype == np.int32
    assert rows.cut[0] and not rows.cut[1]
    data = tf.constant([text.encode("utf-8", "surrogatepass") for text in _TEXTS])
    found = reader.table().rows(data)
    np.testing.assert_array_equal(found.tokens, rows.tokens)
    np.testing.assert_array_equal(found.cut, rows.cut)
    whole = reader.table().rows(data[1:2], whole=True)
    assert whole.tokens.shape == (1, 6)
    short = reader.table().rows(data[1:2]).tokens
    np.testing.assert_array_equal(short[0], rows.tokens[1, : short.shape[1]])
    assert reader.rows([]).tokens.shape == (0, 6)


def test_configs(reader):
    again = TextReader.from_config(reader.get_config())
    assert again.length == 6 and again.size == reader.size == len(reader.words)
    assert again.words == reader.words and again.spared == reader.spared
    np.testing.assert_array_equal(again.rows(_TEXTS).tokens, reader.rows(_TEXTS).tokens)


def test_mistakes():
    with pytest.raises(ValueError, match="a WordList or a Vocabulary, found list"):
        TextReader(["a"], 3)
    with pytest.raises(ValueError, match="length"):
        TextReader(_PIECES, 2)
