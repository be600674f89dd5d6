"""Tokenisation rules that Python and a TensorFlow graph carry out alike.

A rule turns text into tokens. Text is UTF-8; every run of bytes that is not UTF-8 (and
every run of U+FFFD) becomes one U+FFFD, because decoders disagree on how many
replacement characters an invalid run deserves. Only the newline character ends a line.

`whitespace`: tokens are separated by ASCII white space (blank, tab, vertical tab, form
    feed, carriage return). A newline is the token `<eos>`; so is a literal `<eos>`.
`words`: a token is a word (a run of letters, digits, `_` and most characters from
    U+00C0 on, with apostrophes between them: `don't`) or one punctuation character or
    symbol. Control characters, U+00AD and Unicode white space only separate. A newline
    is `<eos>`.
`characters`: a token is one Unicode character. A newline is `<eos>`.
`bytes`: a token is one byte of the text, invalid UTF-8 included. The newline byte is
    called `<eos>`.

The character classes are written out as code points: `\\w` and `\\s` mean different
things to Python's `re` and to RE2, the regular expressions of TensorFlow.
"""

from __future__ import annotations

import re

import numpy as np

RULES = ("whitespace", "words", "characters", "bytes")
# Of pieces that are learnt; see `subwords`.
SUBWORD_RULES = ("sentencepiece-unigram", "sentencepiece-bpe")
# Of pieces of published checkpoints; see `word_pieces`.
WORD_PIECE_RULES = ("wordpiece", "wordpiece-lower")
EOS = "<eos>"
UNK = "<unk>"

INVALID = "\ufffd"
INVALID_RUN = "\ufffd\ufffd+"

# Everything that separates words; the newline is a token and not among them.
SEPARATORS = (
    "\x00-\x09\x0b-\x20\x7f-\xa0\u00ad\u1680\u2000-\u200b\u200e\u200f"
    "\u2028-\u202f\u205f-\u206f\u3000\ufeff"
)
LETTERS = (
    "0-9A-Z_a-z\u00aa\u00b5\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u167f"
    "\u1681-\u1fff\u200c\u200d\u2070-\u209f\u2c00-\u2dff\u3005-\u3007\u3021-\u302f"
    "\u3040-\ud7ff\ue000-\ufdff\ufe20-\ufe2f\ufe70-\ufefe\uff10-\uff19\uff21-\uff3a"
    "\uff41-\uff5a\uff66-\uffdc\U00010000-\U0010ffff"
)
APOSTROPHES = "'\u2019"
WORD_OR_SYMBOL = (
    f"[{LETTERS}]+(?:[{APOSTROPHES}][{LETTERS}]+)*|[^\n{SEPARATORS}{LETTERS}]"
)
SEPARATOR = f"[{SEPARATORS}]"

# Applied in order to the tokens joined by blanks (`\1` means the same to RE2).
READABLE = {
    "whitespace": ((" ?\n ?", "\n"),),
    "words": (
        (" ?\n ?", "\n"),
        (" ([.,;:!?%)\\]}\u2026\u201d])", "\\1"),
        ("([(\\[{\u201c]) ", "\\1"),
    ),
    "characters": (),
    "bytes": (),
}

_invalid_run = re.compile(INVALID_RUN)


def check_rule(rule: str) -> None:
    """Raises ValueError unless `rule` is one that there is."""
    known = (*RULES, *SUBWORD_RULES, *WORD_PIECE_RULES)
    if rule not in known:
        raise ValueError(f"rule must be one of {', '.join(known)}; found {rule!r}.")


def as_text(text: str | bytes) -> str:
    """Returns `text` as str with every invalid run replaced by one U+FFFD."""
    if isinstance(text, str):
        try:
            text.encode()
        except UnicodeEncodeError:  # lone surrogates, which UTF-8 cannot say
            return as_text(text.encode("utf-8", "surrogatepass"))
    else:
        text = text.decode("utf-8", "replace")
    return _invalid_run.sub(INVALID, text) if INVALID in text else text


def as_bytes(text: str | bytes, rule: str) -> bytes:
    """Returns `text` as bytes; only the rule `bytes` keeps invalid UTF-8."""
    if rule == "bytes":
        return text if isinstance(text, bytes) else text.encode("utf-8", "replace")
    if isinstance(text, bytes) and INVALID.encode() not in text:
        try:
            text.decode()
            return text
        except UnicodeDecodeError:
            pass
    return as_text(text).encode()


def surface(token: str) -> str:
    """Returns what a token looks like in a text: `<eos>` is a newline."""
    return "\n" if token == EOS else token


def join_tokens(surfaces: list[str], rule: str) -> str:
    """Returns readable text of tokens whose `<eos>` is already a newline."""
    if rule in ("characters", "bytes"):
        return "".join(surfaces)
    text = " ".join(surfaces)
    for pattern, replacement in READABLE[rule]:
        text = re.sub(pattern, replacement, text)
    return text


def character_codes(text: str | bytes, rule: str) -> np.ndarray:
    """Returns the numbers of the characters, or of the bytes, of a text, `[T]`."""
    if rule == "bytes":
        return np.frombuffer(as_bytes(text, rule), np.uint8)
    string = as_text(text)
    return np.frombuffer(string.encode("utf-32-le"), "<u4")
