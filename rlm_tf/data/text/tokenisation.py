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

import collections
import re
from collections.abc import Callable, Iterable, Iterator

import numpy as np

RULES = ("whitespace", "words", "characters", "bytes")
# Of pieces that are learnt; see `subwords`.
SUBWORD_RULES = ("sentencepiece-unigram", "sentencepiece-bpe")
EOS = "<eos>"
UNK = "<unk>"

INVALID = "\ufffd"
INVALID_RUN = "\ufffd\ufffd+"

# Everything that separates words; the newline is a token and not among them.
_SEPARATORS = (
    "\x00-\x09\x0b-\x20\x7f-\xa0\u00ad\u1680\u2000-\u200b\u200e\u200f"
    "\u2028-\u202f\u205f-\u206f\u3000\ufeff"
)
_WORD = (
    "0-9A-Z_a-z\u00aa\u00b5\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u167f"
    "\u1681-\u1fff\u200c\u200d\u2070-\u209f\u2c00-\u2dff\u3005-\u3007\u3021-\u302f"
    "\u3040-\ud7ff\ue000-\ufdff\ufe20-\ufe2f\ufe70-\ufefe\uff10-\uff19\uff21-\uff3a"
    "\uff41-\uff5a\uff66-\uffdc\U00010000-\U0010ffff"
)
WORD_OR_SYMBOL = f"[{_WORD}]+(?:['\u2019][{_WORD}]+)*|[^\n{_SEPARATORS}{_WORD}]"
SEPARATOR = f"[{_SEPARATORS}]"

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

_word_or_symbol = re.compile(WORD_OR_SYMBOL)
_invalid_run = re.compile(INVALID_RUN)
_PIECE = 1 << 23


def check_rule(rule: str) -> None:
    """Raises ValueError unless `rule` is one of `RULES` or `SUBWORD_RULES`."""
    known = (*RULES, *SUBWORD_RULES)
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


def split_words(text: str | bytes) -> Iterator[list[bytes]]:
    """Yields the tokens of a text under `whitespace`, a piece at a time.

    Pieces end at line ends, so that a large corpus is never a list of all its words.
    """
    data = as_bytes(text, "whitespace")
    for start, end in _pieces(data, b"\n"):
        yield data[start:end].replace(b"\n", b" <eos> ").split()


class WordChunks:
    """The chunks between blanks of a text under `words`.

    Most chunks of a text are repetitions. Its words and symbols are looked for in each
    distinct chunk only, several times as fast as in the text.

    Attributes:
        tokens: Those of each distinct chunk. A newline is a chunk of its own.
        numbers: Which chunk stands where, int32 `[C]`.
    """

    def __init__(self, text: str | bytes):
        known = _Numbers()
        # A zero byte separates words, as a blank does; here it stands for a newline.
        string = as_text(text).replace("\0", " ")
        parts = [np.zeros(0, np.int32)]
        for start, end in _pieces(string, "\n"):
            chunks = string[start:end].replace("\n", " \0 ").split()
            parts.append(
                np.fromiter(map(known.__getitem__, chunks), np.int32, len(chunks))
            )
        self.numbers = np.concatenate(parts)
        self.tokens = [
            ["\n"] if chunk == "\0" else _word_or_symbol.findall(chunk)
            for chunk in known
        ]

    def counts(self) -> collections.Counter[str]:
        """Returns how often each token occurs."""
        counts: collections.Counter[str] = collections.Counter()
        occurrences = np.bincount(self.numbers, minlength=len(self.tokens))
        for tokens, count in zip(self.tokens, occurrences.tolist(), strict=True):
            for token in tokens:
                counts[token] += count
        return counts

    def ids(self, id_of: Callable[[str], int]) -> np.ndarray:
        """Returns the ids of all tokens in their order, int32 `[T]`."""
        lengths = np.array([len(tokens) for tokens in self.tokens], np.int64)
        ids = [id_of(token) for tokens in self.tokens for token in tokens]
        starts = np.cumsum(lengths) - lengths
        sizes = lengths[self.numbers]
        # The place of each token in the list of the distinct chunks' tokens.
        first = np.repeat(starts[self.numbers] - np.cumsum(sizes) + sizes, sizes)
        return np.array(ids, np.int32)[first + np.arange(len(first))]

    def token(self, place: int) -> str:
        """Returns one token of the text."""
        for number in self.numbers:
            if place < len(self.tokens[number]):
                return self.tokens[number][place]
            place -= len(self.tokens[number])
        raise IndexError("WordChunks.token: there is no such place")


class _Numbers(dict[str, int]):
    """Numbers its keys as they come."""

    def __missing__(self, key: str) -> int:
        self[key] = number = len(self)
        return number


def _pieces(text: str | bytes, newline: str | bytes) -> Iterator[tuple[int, int]]:
    start = 0
    while start < len(text):
        end = len(text)
        if end - start > _PIECE:
            found = text.find(newline, start + _PIECE)  # type: ignore[arg-type]
            end = end if found < 0 else found + 1
        yield start, end
        start = end


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


def count_tokens(texts: Iterable[str | bytes], rule: str) -> collections.Counter[str]:
    """Counts tokens; those of no text under `bytes` are there with count 0."""
    counts: collections.Counter[str] = collections.Counter()
    if rule == "bytes":
        counts.update(dict.fromkeys(map(chr, range(256)), 0))
    for text in texts:
        if rule in ("characters", "bytes"):
            codes = np.bincount(character_codes(text, rule))
            counts.update({chr(c): int(codes[c]) for c in np.flatnonzero(codes)})
        elif rule == "words":
            counts.update(WordChunks(text).counts())
        else:
            raw = collections.Counter[bytes]()
            for piece in split_words(text):
                raw.update(piece)
            counts.update({token.decode(): n for token, n in raw.items()})
    if "\n" in counts:
        counts[EOS] += counts.pop("\n")
    return counts
