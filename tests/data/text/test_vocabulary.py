"""Vocabulary: building, encoding, decoding, files."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_tf.data import Vocabulary
from rlm_tf.data.text.tokenisation import RULES, as_text

WORDS = "the cat\nthe <unk> the <unk>\n cat dog \n"


def test_ids_by_frequency_then_token() -> None:
    vocabulary = Vocabulary.build("b b a a\nc c c d\n", "whitespace")
    assert vocabulary.tokens == ("c", "<eos>", "a", "b", "d")
    assert (vocabulary.eos_id, vocabulary.unk_id, len(vocabulary)) == (1, None, 5)


def test_one_eos_per_line_and_blanks_around_lines() -> None:
    vocabulary = Vocabulary.build(WORDS, "whitespace")
    ids = vocabulary.encode(WORDS)
    assert ids.dtype == np.int32
    tokens = " ".join(vocabulary.tokens[i] for i in ids)
    assert tokens == "the cat <eos> the <unk> the <unk> <eos> cat dog <eos>"
    assert vocabulary.decode(ids) == "the cat\nthe <unk> the <unk>\ncat dog\n"
    np.testing.assert_array_equal(
        vocabulary.encode("cat <eos> dog"), vocabulary.encode("cat\ndog")
    )


def test_literal_unk_of_the_text_is_the_unknown_token() -> None:
    vocabulary = Vocabulary.build(WORDS, "whitespace")
    assert vocabulary.encode("horse")[0] == vocabulary.unk_id
    assert vocabulary.id_of("horse") == vocabulary.unk_id


def test_words_and_punctuation() -> None:
    text = "Don't stop (now), it's 3.14 \u201cd\u00e9j\u00e0-vu\u201d!\x00\u2003x_1\n"
    vocabulary = Vocabulary.build(text, "words")
    tokens = " ".join(vocabulary.tokens[i] for i in vocabulary.encode(text))
    assert tokens == (
        "Don't stop ( now ) , it's 3 . 14 \u201c d\u00e9j\u00e0 - vu \u201d ! x_1 <eos>"
    )
    assert vocabulary.decode(vocabulary.encode(text)) == (
        "Don't stop (now), it's 3. 14 \u201cd\u00e9j\u00e0 - vu\u201d! x_1\n"
    )


@pytest.mark.parametrize("code", [0, 9, 0x1C, 0x85, 0xA0, 0xAD, 0x1680, 0x2003, 0x200B])
def test_characters_that_only_separate_words(code: int) -> None:
    vocabulary = Vocabulary.build("a\nb", "words")
    text = vocabulary.decode(vocabulary.encode(f"{chr(code)}a{chr(code)}b"))
    assert text == "a b"


@pytest.mark.parametrize("code", [0x5F, 0xE9, 0x3B1, 0x4E2D, 0xD700, 0x1F600, 0x200D])
def test_characters_that_make_words(code: int) -> None:
    vocabulary = Vocabulary.build(f"a{chr(code)}{chr(code)}\u2019b", "words")
    assert vocabulary.tokens[0] != "a" and len(vocabulary) == 2


@pytest.mark.parametrize("code", [0x21, 0x27, 0xD7, 0x2014, 0x2019, 0x20AC, 0x3002])
def test_characters_that_stand_alone(code: int) -> None:
    vocabulary = Vocabulary.build(f"a{chr(code)}{chr(code)}b", "words")
    assert set(vocabulary.tokens) == {"a", "b", chr(code), "<eos>"}


def test_min_count_and_max_size_give_unk_its_frequency() -> None:
    text = "a a a a b b b c c d\n"
    vocabulary = Vocabulary.build(text, "words", min_count=3)
    assert vocabulary.tokens == ("a", "<unk>", "b", "<eos>")  # tie: `<unk>` < `b`
    vocabulary = Vocabulary.build(text, "words", max_size=4)
    assert vocabulary.tokens == ("a", "<unk>", "b", "<eos>")
    assert len(Vocabulary.build(text, "words", max_size=5)) == 5
    assert len(Vocabulary.build(text, "words", max_size=5, unknown=False)) == 5
    assert Vocabulary.build(text, "words", max_size=5).unk_id is None


def test_max_size_with_unknown_asked_for() -> None:
    vocabulary = Vocabulary.build("a a b\n", "words", max_size=3, unknown=True)
    assert set(vocabulary.tokens) == {"a", "<eos>", "<unk>"}


def test_unknown_without_unk_names_word_and_line() -> None:
    vocabulary = Vocabulary.build("a b\n", "whitespace")
    with pytest.raises(ValueError, match=r"line 2: unknown token 'zebra'"):
        vocabulary.encode("a a\nb zebra a\n")
    with pytest.raises(ValueError, match="line 1: unknown token 'z'"):
        Vocabulary.build("ab\n", "characters").encode("az")
    with pytest.raises(ValueError, match="unknown token 'zebra'"):
        vocabulary.id_of("zebra")


def test_bytes_know_every_byte() -> None:
    vocabulary = Vocabulary.build("ab\n", "bytes")
    everything = bytes(range(256))
    ids = vocabulary.encode(everything)
    assert len(vocabulary) == 256 and sorted(ids) == list(range(256))
    assert vocabulary.eos_id == ids[ord("\n")]


def test_replacement_of_invalid_bytes() -> None:
    assert as_text(b"a\xff\xfe\xe2\x80b\xf0") == "a\ufffdb\ufffd"
    assert as_text("a\ud800\udfffb\ufffd\ufffd") == "a\ufffdb\ufffd"


def test_pieces_of_a_long_text(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "one two\nthree\n\nfour five six\nseven"
    for rule in ("whitespace", "words"):
        vocabulary = Vocabulary.build(text, rule)
        whole = vocabulary.encode(text)
        for size in (1, 3, 8):
            monkeypatch.setattr("rlm_tf.data.text.split_text._CHARACTERS_AT_ONCE", size)
            np.testing.assert_array_equal(vocabulary.encode(text), whole)
            assert Vocabulary.build(text, rule) == vocabulary
        monkeypatch.undo()


def test_unknown_in_a_later_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlm_tf.data.text.split_text._CHARACTERS_AT_ONCE", 1)
    vocabulary = Vocabulary.build("a b\n", "whitespace")
    with pytest.raises(ValueError, match="line 3: unknown token 'zebra'"):
        vocabulary.encode("a\nb\na zebra")


def test_mistakes_in_arguments() -> None:
    with pytest.raises(ValueError, match="rule must be one of"):
        Vocabulary.build("a", "sentences")
    with pytest.raises(ValueError, match="'a' appears twice"):
        Vocabulary(["a", "<eos>", "a"], "words")
    with pytest.raises(ValueError, match="must include <eos>"):
        Vocabulary(["a"], "words")
    with pytest.raises(ValueError, match="one character, found 'ab'"):
        Vocabulary(["ab", "<eos>"], "characters")
    with pytest.raises(ValueError, match="not a byte"):
        Vocabulary(["\u0100", "<eos>"], "bytes")
    with pytest.raises(ValueError, match="newline must be called <eos>"):
        Vocabulary(["\n", "<eos>"], "characters")
    with pytest.raises(ValueError, match="min_count"):
        Vocabulary.build("a", min_count=0)
    with pytest.raises(ValueError, match="max_size"):
        Vocabulary.build("a", max_size=1)
    with pytest.raises(ValueError, match="do not apply"):
        Vocabulary.build("a", "bytes", max_size=7)
    with pytest.raises(ValueError, match=r"id 9 is outside \[0, 2\)"):
        Vocabulary(["a", "<eos>"], "words").decode([0, 9])
    with pytest.raises(ValueError, match=r"axes \[T\]"):
        Vocabulary(["a", "<eos>"], "words").decode(np.zeros((2, 2), int))


def test_pickle_leaves_tables_behind() -> None:
    vocabulary = Vocabulary.build(WORDS, "whitespace")
    vocabulary.encode_tensor(["the cat"])
    again = pickle.loads(pickle.dumps(vocabulary))
    assert again == vocabulary and hash(again) == hash(vocabulary)
    assert again != Vocabulary.build(WORDS, "words")


# === Files ===


@given(
    tokens=st.lists(
        st.text(st.characters(codec="utf-8"), min_size=1), unique=True, max_size=8
    ),
    rule=st.sampled_from(["whitespace", "words"]),
)
@settings(deadline=None, max_examples=60)
def test_file_round_trip(tmp_path_factory, tokens: list[str], rule: str) -> None:
    tokens = [t for t in tokens if t != "<eos>"]
    path = tmp_path_factory.mktemp("vocabulary") / "vocabulary.txt"
    vocabulary = Vocabulary([*tokens, "<eos>"], rule)
    vocabulary.save(path)
    assert Vocabulary.load(path) == vocabulary
    assert len(path.read_text().splitlines()) == len(vocabulary) + 1
    assert [p.name for p in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("rule", RULES)
def test_file_round_trip_of_built_vocabularies(tmp_path, rule: str) -> None:
    text = "a \\u0041 \\ \u00e9\r\n\x0b\x7f\u2028\x85 \U0001f600 n\\n\n"
    vocabulary = Vocabulary.build(text, rule)
    vocabulary.save(tmp_path / "v")
    assert Vocabulary.load(tmp_path / "v") == vocabulary
    # A file that passed through an editor with other line ends is still the same.
    data = (tmp_path / "v").read_bytes()
    (tmp_path / "w").write_bytes(data.replace(b"\n", b"\r\n"))
    assert Vocabulary.load(tmp_path / "w") == vocabulary


HEADER = "rlm_tf vocabulary 1, rule words, 2 tokens\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "line 1: not a vocabulary file"),
        (b"hello\nworld\n", "line 1: not a vocabulary file"),
        (HEADER + "a\n<eos>", "line 3: the file ends within a line"),
        (HEADER + "a\n", "line 2: expected 2 tokens, found 1"),
        (HEADER + "a\n<eos>\nb\n", "line 4: expected 2 tokens, found 3"),
        (HEADER + "a\n\n", "line 3: an empty token"),
        (HEADER + "a\na\n", "line 3: token 'a' was already in line 2"),
        (HEADER + "a\\q\n<eos>\n", "line 2: unknown escape"),
        (HEADER + "a\\u00\n<eos>\n", "line 2: unknown escape"),
        (HEADER + "a\nb\n", "must include <eos>"),
        (HEADER.replace("words", "verbs") + "a\n<eos>\n", "rule must be one of"),
        (HEADER.encode() + b"a\n\xff\n", "line 3: not UTF-8"),
    ],
)
def test_malformed_files(tmp_path, content: str | bytes, message: str) -> None:
    path = tmp_path / "vocabulary.txt"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=f"{re.escape(str(path))}.*{message}"):
        Vocabulary.load(path)


@given(data=st.binary(max_size=60), header=st.booleans())
@settings(deadline=None, max_examples=100)
def test_arbitrary_files(tmp_path_factory, data: bytes, header: bool) -> None:
    path = tmp_path_factory.mktemp("vocabulary") / "v"
    path.write_bytes((HEADER.encode() if header else b"") + data)
    try:
        Vocabulary.load(path)
    except ValueError as error:
        assert str(path) in str(error)


def test_failed_save_leaves_the_old_file(tmp_path, monkeypatch) -> None:
    path = tmp_path / "v"
    Vocabulary.build("a\n").save(path)
    before = path.read_bytes()

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        Vocabulary.build("b\n").save(path)
    assert path.read_bytes() == before and len(list(tmp_path.iterdir())) == 1


def test_half_a_character_is_no_token():
    message = r"token 1, .* has the lone surrogate U\+D83D at place 1"
    with pytest.raises(ValueError, match=message):
        Vocabulary(["<eos>", "a\ud83d"], "words")
    assert len(Vocabulary(["<eos>", "\U0001f600"], "words")) == 2
