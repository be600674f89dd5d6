"""Subwords: nothing is unknown, every text comes back, graphs and Python agree."""

from __future__ import annotations

import pickle
import unicodedata

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rlm_tf.data import Vocabulary
from rlm_tf.data.text.python_docs import python_docs
from rlm_tf.data.text.tokenisation import SUBWORD_RULES, as_text

TEXT = python_docs()["valid"]


@pytest.fixture(scope="module", params=SUBWORD_RULES)
def vocabulary(request):
    return Vocabulary.build(TEXT, request.param, max_size=600)


def test_the_first_ids_are_reserved(vocabulary):
    assert len(vocabulary) == 600 == len(set(vocabulary.tokens))
    assert vocabulary.tokens[:3] == ("<unk>", "<eos>", "<0x00>")
    assert (vocabulary.unk_id, vocabulary.eos_id) == (0, 1)
    other = Vocabulary.build(
        TEXT, vocabulary.rule, max_size=600, reserved=("<unk>", "<eos>", "[CLS]", "[M]")
    )
    assert other.tokens[:5] == ("<unk>", "<eos>", "[CLS]", "[M]", "<0x00>")
    # No text has a reserved name, or the piece of a byte that it spells.
    ids = other.encode("<unk> <eos> [CLS] [M] <0x41>")
    assert not set(ids) & {0, 1, 2, 3, other.id_of("<0x41>")}


@settings(max_examples=60, deadline=None)
@given(text=st.one_of(st.text(max_size=60), st.binary(max_size=40)))
@example(text="")
@example(text="\n")
@example(text="\n\na\n \n")
@example(text="  two  blanks \t and a tab ")
@example(text="\u2581\x1a0\x1a1\u25810 \x1a")
@example(text="naïve 中文 日本\u0301 \u2028 \x00 🙂 \ud800")
@example(text=b"\xff\xfe a \xe4\xb8")
def test_every_text_comes_back(vocabulary, text):
    ids = vocabulary.encode(text)
    assert ids.dtype == np.int32 and vocabulary.unk_id not in ids
    assert vocabulary.decode(ids) == as_text(text)
    # A newline is `<eos>`, and nothing else is.
    assert np.count_nonzero(ids == vocabulary.eos_id) == as_text(text).count("\n")
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    in_graph = vocabulary.encode_tensor(tf.constant([data, b"b\n", b""]))
    np.testing.assert_array_equal(in_graph[0], ids)
    np.testing.assert_array_equal(in_graph[1], vocabulary.encode("b\n"))
    assert in_graph[2].shape == (0,)
    texts = vocabulary.decode_tensor(in_graph).numpy()
    assert texts[0].decode() == as_text(text) and list(texts[1:]) == [b"b\n", b""]


def test_lines_are_encoded_alone(vocabulary):
    first, second = vocabulary.encode("the class"), vocabulary.encode("a name")
    whole = vocabulary.encode("the class\na name")
    np.testing.assert_array_equal(whole, [*first, vocabulary.eos_id, *second])


def test_long_texts_are_encoded_in_parts(vocabulary, monkeypatch):
    text = "a b\n\nc\n" * 5 + "d"
    whole = vocabulary.encode(text)
    monkeypatch.setattr("rlm_tf.data.text.subword_pieces._LINES", 4)
    np.testing.assert_array_equal(vocabulary.encode(text), whole)


def test_a_cleared_session_takes_no_pieces_away(vocabulary):
    ids = vocabulary.encode("seen")
    tensor = vocabulary.encode_tensor(tf.constant(["seen"]))
    keras.backend.clear_session()
    np.testing.assert_array_equal(vocabulary.encode("seen"), ids)
    keras.backend.clear_session()
    assert vocabulary.decode(ids) == "seen"
    keras.backend.clear_session()
    again = vocabulary.encode_tensor(tf.constant(["seen"]))
    np.testing.assert_array_equal(again.flat_values, tensor.flat_values)


@pytest.mark.parametrize("shape", [(2, 3), (0, 3), (2, 0), (2, 2, 3), (4,)])
def test_decoding_dense_ids_of_any_rank(vocabulary, shape):
    ids = np.random.default_rng(0).integers(1, len(vocabulary), shape)
    texts = tf.function(vocabulary.decode_tensor)(tf.constant(ids, tf.int64)).numpy()
    assert np.shape(texts) == shape[:-1]
    found = np.reshape(texts, -1)
    rows = ids.reshape(len(found), shape[-1])
    assert [text.decode() for text in found] == [*map(vocabulary.decode, rows)]


def test_ids_that_are_none_are_named(vocabulary):
    with pytest.raises(ValueError, match=r"id 600 is outside \[0, 600\)"):
        vocabulary.decode([1, 600])


def test_training_is_repeatable_and_reads_long_lines():
    long = " ".join(["unforeseeable"] * 1000)
    assert len(long) > 4192
    one, two = (
        Vocabulary.build([long, TEXT], "sentencepiece-bpe", max_size=700)
        for _ in range(2)
    )
    assert one == two and hash(one) == hash(two)
    assert any("unforesee" in piece for piece in one.tokens)
    assert one != Vocabulary.build(TEXT, "sentencepiece-bpe", max_size=700)


def test_files_and_copies_are_the_vocabulary(vocabulary, tmp_path):
    path = tmp_path / "vocabulary.txt"
    vocabulary.save(path)
    for other in (Vocabulary.load(path), pickle.loads(pickle.dumps(vocabulary))):
        assert other == vocabulary and other.tokens == vocabulary.tokens
        np.testing.assert_array_equal(other.encode("a\nb"), vocabulary.encode("a\nb"))
    lines = path.read_text().split("\n")
    damages = {
        "line 2: expected a SentencePiece model": [lines[0], "?", *lines[2:]],
        "tokens are not the pieces of the Sent": [
            *lines[:-2],
            "other",
            "",
        ],
        "expected 600 tokens, found 599": [*lines[:-2], ""],
    }
    for message, damaged in damages.items():
        path.write_text("\n".join(damaged))
        with pytest.raises(ValueError, match=message):
            Vocabulary.load(path)


def test_nfkc_makes_compatible_characters_one():
    found = Vocabulary.build(
        TEXT, "sentencepiece-unigram", max_size=600, normalisation="nfkc"
    )
    text = "\ufb01ne \u2460 \uff57ide e\u0301\n\u2581"
    assert found.decode(found.encode(text)) == unicodedata.normalize("NFKC", text)


@pytest.mark.parametrize("rule", SUBWORD_RULES)
@pytest.mark.parametrize(("text", "size"), [("ab ab abc\n" * 20, 5000), (TEXT, 10)])
def test_sizes_that_are_not_possible_are_clamped(rule, text, size, caplog):
    found = Vocabulary.build(text, rule, max_size=size)
    assert len(found) < 600
    told = [r.getMessage() for r in caplog.records if r.name.startswith("rlm_tf.")]
    assert told == [
        f"Vocabulary.build: {size:,} pieces are not possible for this text under the "
        f"rule {rule}; took {len(found)}."
    ]
    assert found.decode(found.encode("zü\n")) == "zü\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_count": 2}, "nothing is unknown; min_count and unknown do not apply"),
        ({"unknown": True}, "nothing is unknown; min_count and unknown do not apply"),
        ({"reserved": ("<unk>", "a")}, "<unk> and <eos> among them, found <unk>, a"),
        ({"reserved": ("<unk>", "<eos>", "x", "x")}, "must be distinct names"),
        ({"normalisation": "nfd"}, "must be one of identity, nfkc; found 'nfd'"),
        ({"max_size": 1}, "max_size"),
    ],
)
def test_mistakes_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        Vocabulary.build(TEXT, "sentencepiece-bpe", **options)


def test_other_mistakes_are_named():
    with pytest.raises(ValueError, match="nothing to learn from"):
        Vocabulary.build("\n\n", "sentencepiece-bpe")
    with pytest.raises(ValueError, match="are for the rules sentencepiece-unigram"):
        Vocabulary.build("a", "words", normalisation="nfkc")
    for tokens, rule, model in (
        (["<eos>"], "words", b""),
        (["<eos>"], "sentencepiece-bpe", None),
    ):
        with pytest.raises(ValueError, match="a SentencePiece model is for the rules"):
            Vocabulary(tokens, rule, model)
