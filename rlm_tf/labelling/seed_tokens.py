"""How texts are cut into the words that seeds are compared with."""

from __future__ import annotations

import re
import string

from rlm_tf.data.text.tokenisation import APOSTROPHES, LETTERS, as_text

TOKENISATIONS = ("words", "published")
# As regular expressions of Python and of TensorFlow alike.
WORD = f"[{LETTERS}]+(?:[{APOSTROPHES}][{LETTERS}]+)*"
PUNCTUATION = f"[{re.escape(string.punctuation)}]"
# What `str.split` parts words at.
WHITE_SPACE = (
    "[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
)
FINAL_SIGMA, SIGMA = "\u03c2", "\u03c3"
_WORD = re.compile(WORD)
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def lowered(text: str) -> str:
    """Returns a text in lower case, as graphs have it, too.

    A final sigma is a sigma: where a word ends depends on the version of Unicode.
    """
    return text.lower().replace(FINAL_SIGMA, SIGMA)


def words_of(text: str) -> list[str]:
    """Returns the words of a text in lower case, without symbols: `words`.

    A word is one of the rule `words` of vocabularies (`rlm_tf.data.text.tokenisation`).
    """
    return _WORD.findall(lowered(as_text(text)))


def first_words(text: str, number: int) -> str:
    """Returns the beginning of a text: so many of its words, in lower case."""
    return " ".join(words_of(text)[:number])


def word_spans(text: str) -> list[tuple[str, tuple[int, int]]]:
    """Returns the words of a text in lower case, and where each begins and ends."""
    return [(found[0], found.span()) for found in _WORD.finditer(text)]


def published_tokens(text: str) -> list[str]:
    """Returns tokens as the authors cut them: `published`.

    Parted by white space, without ASCII punctuation, in lower case: `don't` is `dont`.
    """
    return lowered(as_text(text).translate(_NO_PUNCTUATION)).split()


def unlowered_published_tokens(text: str) -> list[str]:
    """Returns the same tokens as they are written, of which stop words are told."""
    return as_text(text).translate(_NO_PUNCTUATION).split()


def tokens_of(text: str, tokenisation: str) -> list[str]:
    """Returns the tokens of a text, by one of `TOKENISATIONS`."""
    return words_of(text) if tokenisation == "words" else published_tokens(text)
