"""The words of a text, found once."""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from rlm_tf.data.text import tokenisation

# What a character is to the rule `words`.
_SEPARATOR, _SYMBOL, _LETTER, _APOSTROPHE = range(4)
_CHARACTERS_AT_ONCE = 1 << 23


class SplitText:
    """A text cut into tokens under `words` or `whitespace`.

    To make a vocabulary of a text and to encode it, its tokens are looked for once, if
    both are given this.

    Attributes:
        rule: The tokenisation rule.
        tokens: The distinct tokens; the newline
            is called `"\\n"` under `words` and `<eos>` under `whitespace`.
        numbers: Which of them stands where, int32 `[T]`.

    Args:
        text: UTF-8 text.
        rule: `words` or `whitespace`.

    Raises:
        ValueError: If the rule is another.
    """

    def __init__(self, text: str | bytes, rule: str):
        known = _Numbers()
        parts = [np.zeros(0, np.int32)]
        if rule == "words":
            string = tokenisation.as_text(text)
            for start, end in _pieces(string, "\n"):
                parts.append(_words(string[start:end], known))
        elif rule == "whitespace":
            data = tokenisation.as_bytes(text, rule)
            for start, end in _pieces(data, b"\n"):
                words = data[start:end].replace(b"\n", b" <eos> ").split()
                parts.append(known.all(words))
        else:
            raise ValueError(
                f"SplitText: rule must be words or whitespace; found {rule!r}."
            )
        self.numbers = np.concatenate(parts)
        self.rule = rule
        self.tokens = [token.decode() for token in known]

    def under(self, rule: str) -> SplitText:
        """Returns this.

        Raises:
            ValueError: If it is not what a rule makes of its text.
        """
        if self.rule != rule:
            raise ValueError(
                f"the text is split under the rule {self.rule!r}; expected {rule!r}."
            )
        return self

    def counts(self) -> collections.Counter[str]:
        """Returns how often each token occurs."""
        occurrences = np.bincount(self.numbers, minlength=len(self.tokens))
        return collections.Counter(
            dict(zip(self.tokens, occurrences.tolist(), strict=True))
        )

    def ids(self, id_of: Callable[[str], int]) -> np.ndarray:
        """Returns the ids of all tokens in their order, int32 `[T]`."""
        ids = np.fromiter(map(id_of, self.tokens), np.int32, len(self.tokens))
        return ids[self.numbers]


class _Numbers(dict[bytes, int]):
    """Numbers its keys as they come."""

    def __missing__(self, key: bytes) -> int:
        self[key] = number = len(self)
        return number

    def all(self, keys: Sequence[bytes]) -> np.ndarray:
        """Returns the numbers of keys, int32 `[len(keys)]`."""
        return np.fromiter(map(self.__getitem__, keys), np.int32, len(keys))


def _words(text: str, known: _Numbers) -> np.ndarray:
    """Returns the numbers of the tokens of a text under `words`.

    Where the regular expression looks at one token after another, this compares the
    kinds of all neighbouring characters at once.
    """
    plain = text.isascii()
    if plain:
        codes = np.frombuffer(text.encode("ascii"), np.uint8)
    else:
        codes = np.frombuffer(text.encode("utf-32-le"), "<u4")
    kinds = _kinds()[codes]
    inside = kinds == _LETTER
    marks = np.flatnonzero(kinds == _APOSTROPHE)
    # With letters on both sides; at an end of the text there is none.
    marks = marks[(marks > 0) & (marks < len(text) - 1)]
    inside[marks[inside[marks - 1] & inside[marks + 1]]] = True
    # Where a word goes on from the character before.
    goes_on = np.zeros(len(text) + 1, bool)
    np.logical_and(inside[1:], inside[:-1], out=goes_on[1:-1])
    begins = (kinds != _SEPARATOR) & ~goes_on[:-1]
    first = np.flatnonzero(begins)
    longer = goes_on[first + 1]
    numbers = np.empty(len(first), np.int32)
    # Of one character there are few, many times.
    characters = codes[first[~longer]]
    distinct = np.flatnonzero(np.bincount(characters))
    table = np.zeros(int(distinct.max(initial=0)) + 1, np.int32)
    table[distinct] = known.all([chr(code).encode() for code in distinct.tolist()])
    numbers[~longer] = table[characters]
    # The others, with a blank in place of the character after each.
    in_longer = goes_on[:-1] | goes_on[1:]
    taken = in_longer.copy()
    taken[1:] |= in_longer[:-1]
    words = np.where(in_longer, codes, codes.dtype.type(ord(" ")))[taken].tobytes()
    if not plain:
        words = words.decode("utf-32-le").encode()
    numbers[longer] = known.all(words.split())
    return numbers


@functools.cache
def _kinds() -> np.ndarray:
    """Returns the kind of every character to the rule `words`, uint8 `[0x110000]`."""
    kinds = np.full(0x110000, _SYMBOL, np.uint8)
    for characters, kind in (
        (tokenisation.SEPARATORS, _SEPARATOR),
        (tokenisation.LETTERS, _LETTER),
        (tokenisation.APOSTROPHES, _APOSTROPHE),
    ):
        for first, last in _ranges(characters):
            kinds[first : last + 1] = kind
    return kinds


def _ranges(characters: str) -> Iterator[tuple[int, int]]:
    """Yields the first and last code of each range of a character class."""
    place = 0
    while place < len(characters):
        first = last = ord(characters[place])
        if characters[place + 1 : place + 2] == "-":
            last = ord(characters[place + 2])
            place += 2
        yield first, last
        place += 1


def _pieces(text: str | bytes, newline: str | bytes) -> Iterator[tuple[int, int]]:
    """Yields bounds of pieces at line ends, so that words never all stand in a list."""
    start = 0
    while start < len(text):
        end = len(text)
        if end - start > _CHARACTERS_AT_ONCE:
            found = text.find(newline, start + _CHARACTERS_AT_ONCE)  # type: ignore[arg-type]
            end = end if found < 0 else found + 1
        yield start, end
        start = end


def count_tokens(
    texts: Iterable[str | bytes | SplitText], rule: str
) -> collections.Counter[str]:
    """Counts tokens; those of no text under `bytes` are there with count 0.

    Raises:
        ValueError: If a text is split under another rule.
    """
    counts: collections.Counter[str] = collections.Counter()
    if rule == "bytes":
        counts.update(dict.fromkeys(map(chr, range(256)), 0))
    for text in texts:
        if isinstance(text, SplitText):
            counts.update(text.under(rule).counts())
        elif rule in ("words", "whitespace"):
            counts.update(SplitText(text, rule).counts())
        else:
            codes = np.bincount(tokenisation.character_codes(text, rule))
            counts.update({chr(c): int(codes[c]) for c in np.flatnonzero(codes)})
    if "\n" in counts:
        counts[tokenisation.EOS] += counts.pop("\n")
    return counts
