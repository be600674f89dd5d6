"""The in-graph forms agree with the Python forms."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_tf.data import Vocabulary
from rlm_tf.data.text.tokenisation import RULES
from rlm_tf.data.text.vocabulary_tables import VocabularyTables

_TEXT = (
    "the cat's <unk> sat (on) a mat , \u201cd\u00e9j\u00e0 vu\u201d \u2019 ... 3.14!\n"
    "\u00a0\u2003\u200b\ufeff\x1c\x85\u2028 caf\u00e9 \U0001f600 \ufffd <eos> { } [ ]\n"
)
VOCABULARIES = {
    rule: Vocabulary.build(_TEXT, rule, unknown=None if rule == "bytes" else True)
    for rule in RULES
}
# Pieces on which decoders, white space rules and regular expressions may differ.
_PIECES = [
    *(chr(c).encode() for c in range(33)),
    *(w.encode() for w in ("the", "cat's", "<unk>", "<eos>", "<unk", "'", "\u2019")),
    *(
        chr(c).encode()
        for c in (
            *(0x7F, 0x80, 0x85, 0x9F, 0xA0, 0xAD, 0x1680, 0x2003, 0x200B, 0x200C),
            *(0x2028, 0x2029, 0x202F, 0x205F, 0x3000, 0xFEFF, 0xFFFD, 0xFFFE, 0xFFFF),
            *(0xD7FF, 0xE000, 0xE9, 0x301, 0xDF, 0x130, 0x1F600, 0x10FFFF, 0x3042),
        )
    ),
    *(b"\xff", b"\x80", b"\xc0\x80", b"\xe2\x80", b"\xed\xa0\x80", b"\xf0\x9f\x98"),
    *(b"\xf4\x90\x80\x80", b"\xf8\x88\x80\x80\x80", b"\xe0\x80\xaf", b"\xc3"),
]
_strings = st.one_of(
    st.text(max_size=20).map(lambda s: s.encode("utf-8", "surrogatepass")),
    st.binary(max_size=20),
    st.lists(st.sampled_from(_PIECES), max_size=12).map(b"".join),
)


@pytest.mark.parametrize("rule", RULES)
@given(strings=st.lists(_strings, max_size=6))
@settings(deadline=None, max_examples=150)
def test_encode_agrees(rule: str, strings: list[bytes]) -> None:
    vocabulary = VOCABULARIES[rule]
    ids = vocabulary.encode_tensor(tf.constant(strings, tf.string))
    assert ids.dtype == tf.int32 and ids.shape.as_list() == [len(strings), None]
    for string, row in zip(strings, ids, strict=True):
        np.testing.assert_array_equal(row.numpy(), vocabulary.encode(string), string)


@pytest.mark.parametrize("rule", RULES)
@given(data=st.data())
@settings(deadline=None, max_examples=100)
def test_decode_agrees_and_reads_back(rule: str, data: st.DataObject) -> None:
    vocabulary = VOCABULARIES[rule]
    ids = data.draw(st.lists(st.integers(0, len(vocabulary) - 1), max_size=20))
    text = vocabulary.decode(ids)
    graph = vocabulary.decode_tensor(tf.constant([ids], tf.int32)).numpy()
    assert [text.encode()] == list(graph)
    lossless = rule == "whitespace" or vocabulary.unk_id not in ids
    valid = rule != "bytes" or "\ufffd" not in text
    # A run of U+FFFD reads as one (its id stands alone only).
    run = "\ufffd\ufffd" in text
    if lossless and valid and not run:
        np.testing.assert_array_equal(vocabulary.encode(text), ids)


@pytest.mark.parametrize("rule", RULES)
def test_every_character_agrees(rule: str) -> None:
    vocabulary = VOCABULARIES[rule]
    characters = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    strings = [
        "a".join(characters[i : i + 5000]) for i in range(0, len(characters), 5000)
    ]
    ids = vocabulary.encode_tensor(tf.constant(strings))
    for string, row in zip(strings, ids, strict=True):
        np.testing.assert_array_equal(row.numpy(), vocabulary.encode(string))


def test_decode_of_ragged_and_batched_ids() -> None:
    vocabulary = VOCABULARIES["words"]
    ids = vocabulary.encode_tensor(["the cat's", "", "mat, mat"])
    assert vocabulary.decode_tensor(ids).numpy().tolist() == [
        b"the cat's",
        b"",
        b"mat, mat",
    ]
    dense = tf.reshape(vocabulary.encode_tensor(["a mat"]).to_tensor(), [1, 1, 2])
    assert vocabulary.decode_tensor(dense).numpy().tolist() == [[b"a mat"]]


def test_empty_batch() -> None:
    for vocabulary in VOCABULARIES.values():
        ids = vocabulary.encode_tensor(tf.constant([], tf.string))
        assert ids.shape.as_list() == [0, None]
        assert vocabulary.decode_tensor(ids).shape.as_list() == [0]


def test_unknown_without_unk_is_an_error_that_shows_the_token() -> None:
    vocabulary = Vocabulary.build("a b\n", "words")
    with pytest.raises(tf.errors.InvalidArgumentError, match="zebra"):
        vocabulary.encode_tensor(["a zebra"])
    encode = tf.function(vocabulary.encode_tensor)
    with pytest.raises(tf.errors.InvalidArgumentError, match="zebra"):
        encode(tf.constant(["a zebra"]))
    np.testing.assert_array_equal(encode(tf.constant(["b a"])).values, [2, 1])


def test_tables_first_made_inside_a_function() -> None:
    vocabulary = Vocabulary.build("a b\n", "words")
    encode = tf.function(lambda strings: vocabulary.encode_tensor(strings).values)
    np.testing.assert_array_equal(encode(tf.constant(["b"])), [2])
    np.testing.assert_array_equal(vocabulary.encode_tensor(["b"]).values, [2])


def add_functions(module: tf.Module, rule: str, tables: VocabularyTables) -> None:
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def encode(strings: tf.Tensor) -> tf.Tensor:
        return tables.encode(strings).to_tensor(-1)

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32)])
    def decode(ids: tf.Tensor) -> tf.Tensor:
        return tables.decode(ids)

    setattr(module, f"encode_{rule}", encode)
    setattr(module, f"decode_{rule}", decode)


@pytest.mark.landing
def test_saved_model_needs_only_tensorflow(tmp_path) -> None:
    module = tf.Module()
    module.vocabularies = {r: v.graph_tables() for r, v in VOCABULARIES.items()}
    for rule, tables in module.vocabularies.items():
        add_functions(module, rule, tables)
    tf.saved_model.save(module, str(tmp_path / "model"))
    script = f"""
import tensorflow as tf
model = tf.saved_model.load({str(tmp_path / "model")!r})
for rule in {RULES!r}:
    ids = getattr(model, "encode_" + rule)(tf.constant([{_TEXT!r}]))
    text = getattr(model, "decode_" + rule)(ids)
    print(ids.numpy()[0].tolist(), text.numpy()[0])
"""
    output = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    for line, vocabulary in zip(output, VOCABULARIES.values(), strict=True):
        ids = vocabulary.encode(_TEXT)
        assert line == f"{ids.tolist()} {vocabulary.decode(ids).encode()!r}"
