"""Texts whose tokens are found once."""

import random
import re

import pytest

from rlm_tf.data import Vocabulary
from rlm_tf.data.text import split_text, tokenisation
from rlm_tf.data.text.split_text import SplitText

_TOKEN = re.compile("\n|" + tokenisation.WORD_OR_SYMBOL)
_CHARACTERS = "ab'\u2019\n .,\x00\t\u3000\u00e9\u6f22\U00020000_-\u200c\u00ad\u00d7"


def _tokens(text: SplitText) -> list[str]:
    return [text.tokens[number] for number in text.numbers]


def test_words_are_those_of_the_regular_expression():
    rng = random.Random(0)
    for alphabet in ("ab' \n.-", _CHARACTERS):
        for length in range(400):
            text = "".join(rng.choice(alphabet) for _ in range(length % 20))
            assert _tokens(SplitText(text, "words")) == _TOKEN.findall(text), text


def test_every_character_has_the_kind_that_the_expression_gives_it():
    codes = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    text = tokenisation.as_text("".join(chr(code) + "a" for code in codes))
    assert _tokens(SplitText(text, "words")) == _TOKEN.findall(text)


def test_pieces_make_no_difference(monkeypatch):
    text = "It's one line.\n\nAnd \u00e9t\u00e9, 'two'\n" * 20
    whole = {rule: SplitText(text, rule) for rule in ("words", "whitespace")}
    monkeypatch.setattr(split_text, "_CHARACTERS_AT_ONCE", 30)
    for rule, expected in whole.items():
        found = SplitText(text, rule)
        assert _tokens(found) == _tokens(expected)
        assert found.counts() == expected.counts()


def test_a_vocabulary_takes_it_for_the_text():
    text = "one two, three\ntwo three three\n"
    for rule in ("words", "whitespace"):
        parts = SplitText(text, rule)
        vocabulary = Vocabulary.build(parts, rule)
        assert vocabulary == Vocabulary.build(text, rule)
        assert (vocabulary.encode(parts) == vocabulary.encode(text)).all()


def test_other_rules_are_refused():
    with pytest.raises(ValueError, match="must be words or whitespace; found 'bytes'"):
        SplitText("a", "bytes")
    words = SplitText("a b\n", "words")
    for rule in ("whitespace", "bytes", "sentencepiece-bpe"):
        with pytest.raises(ValueError, match=f"rule 'words'; expected '{rule}'"):
            Vocabulary.build(words, rule)
    for rule in ("whitespace", "bytes"):
        with pytest.raises(ValueError, match=f"rule 'words'; expected '{rule}'"):
            Vocabulary.build("a b\n", rule).encode(words)
