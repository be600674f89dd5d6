"""Parses ARPA files, the n-gram format that KenLM and SRILM share."""

from __future__ import annotations

import dataclasses
import gzip
import io
import os
import re
import zlib
from typing import IO, NoReturn

import numpy as np

_ZERO = -99.0  # Both tools write this log10 for probability zero.
# Far beyond what tools write, and little enough to be refused at once.
_MOST_ORDERS = 20
_MOST_BLANK = 1_000
_MOST_COMMENTS = 10_000
_LONGEST_LINE = 1_000_000
_COUNT = re.compile(rb"ngram\s+(\d{1,3})\s*=\s*(\d{1,15})")


@dataclasses.dataclass(frozen=True)
class ArpaSection:
    """The n-grams of one order.

    Attributes:
        ngrams: Numbers of the words in the file's vocabulary, int64 `[E, n]`.
        probs: Probabilities, float64 `[E]`.
        backoff: Back-off weights, float64 `[E]`; NaN where the file gives none.
    """

    ngrams: np.ndarray
    probs: np.ndarray
    backoff: np.ndarray


@dataclasses.dataclass(frozen=True)
class ArpaFile:
    """An ARPA file: its words in the order of its unigrams, and its n-grams."""

    words: list[bytes]
    sections: list[ArpaSection]


class _Lines:
    """The lines of a file one after the other, and the error that names one of them.

    Args:
        path: The file, for messages.
        stream: Its content, unpacked as it is read.
    """

    def __init__(self, path: str, stream: IO[bytes]) -> None:
        self.path = path
        self.number = 0
        self.line: bytes | None = b""
        self._stream = stream
        self.advance()

    def advance(self) -> None:
        """Goes to the next line; None stands for the end of the file."""
        try:
            line = self._stream.readline(_LONGEST_LINE + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{self.path}: damaged gzip file ({error}).") from error
        self.number += 1
        self.line = line.rstrip(b"\n") if line else None
        if len(line) > _LONGEST_LINE:
            self.fail(f"lines of at most {_LONGEST_LINE:,} bytes")

    def fail(
        self, expected: str, number: int | None = None, found: bytes | None = None
    ) -> NoReturn:
        """Raises ValueError; of the present line, if `number` and `found` are None."""
        found = self.line if found is None else found
        shown = "the end of the file"
        if found is not None:
            shown = repr(found[:60].decode("utf-8", "backslashreplace"))
        raise ValueError(
            f"{self.path}, line {number or self.number}: expected {expected}, found "
            f"{shown}."
        )

    def skip_blank(self) -> bytes | None:
        """Moves to the next line that is not blank and returns it stripped."""
        for _ in range(_MOST_BLANK):
            if self.line is None:
                return None
            if stripped := self.line.strip():
                return stripped
            self.advance()
        self.fail(f"at most {_MOST_BLANK:,} blank lines in a row")


def parse_arpa(path: str | os.PathLike[str]) -> ArpaFile:
    """Reads an ARPA file, plain or gzipped (by its content, not its name).

    It is unpacked and checked line by line: what is no such file is refused before it
    fills the memory.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is not a whole ARPA file; names the file and the line.
    """
    path = os.fspath(path)
    with open(path, "rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        if not packed:
            return _parse(_Lines(path, file))
        # Its own lines pass through Python one by one.
        with io.BufferedReader(gzip.GzipFile(fileobj=file)) as stream:
            return _parse(_Lines(path, stream))


def _parse(lines: _Lines) -> ArpaFile:
    counts = _parse_header(lines)
    word_numbers: dict[bytes, int] = {}
    sections = []
    for n, count in enumerate(counts, start=1):
        title = b"\\%d-grams:" % n
        if lines.skip_blank() != title:
            lines.fail(f"'{title.decode()}'")
        lines.advance()
        lines.skip_blank()
        sections.append(_parse_section(lines, n, count, word_numbers))
    if lines.skip_blank() != b"\\end\\":
        lines.fail(r"'\end\'")
    return ArpaFile(list(word_numbers), sections)


def _parse_header(lines: _Lines) -> list[int]:
    # Some tools write comments first.
    while (line := lines.skip_blank()) != b"\\data\\":
        if line is None:
            lines.fail(r"'\data\'")
        if lines.number > _MOST_COMMENTS:
            lines.fail(rf"'\data\' within {_MOST_COMMENTS:,} lines")
        lines.advance()
    lines.advance()
    counts: list[int] = []
    while match := _COUNT.fullmatch(lines.skip_blank() or b""):
        if int(match[1]) != len(counts) + 1:
            lines.fail(f"'ngram {len(counts) + 1}=<count>'")
        if len(counts) == _MOST_ORDERS:
            lines.fail(f"n-grams of at most {_MOST_ORDERS} words")
        counts.append(int(match[2]))
        lines.advance()
    if not counts:
        lines.fail("'ngram 1=<count>'")
    return counts


def _parse_section(
    lines: _Lines, n: int, count: int, word_numbers: dict[bytes, int]
) -> ArpaSection:
    first = lines.number
    # The header may promise more than there is: let the lists grow with the lines.
    numbers: list[int] = []
    log_probs: list[float] = []
    log_backoff: list[float] = []
    missing = float("nan")
    for _ in range(count):
        if lines.line is None:
            lines.fail(f"{count} {n}-grams")
        fields = lines.line.split()
        try:
            log_probs.append(_at_most(1e-6, fields[0]))
            if len(fields) == n + 2:
                log_backoff.append(_at_most(-_ZERO, fields[-1]))
            elif len(fields) == n + 1:
                log_backoff.append(missing)
            else:
                raise ValueError
        except (ValueError, IndexError):
            lines.fail(
                f"a log10 probability (at most 0), {n} word(s) and perhaps the log10 "
                "of a back-off weight",
            )
        words = fields[1 : n + 1]
        if n == 1:
            if words[0] in word_numbers:
                lines.fail("each word once")
            word_numbers[words[0]] = len(word_numbers)
        try:
            numbers.extend([word_numbers[word] for word in words])
        except KeyError:
            lines.fail("words that are among the 1-grams")
        lines.advance()
    ngrams = np.array(numbers, np.int64).reshape(-1, n)
    order = np.lexsort(ngrams.T)
    repeated = np.flatnonzero((ngrams[order[1:]] == ngrams[order[:-1]]).all(axis=1))
    if len(repeated):
        place = int(order[repeated[0] + 1])
        known = list(word_numbers)
        found = b" ".join(known[number] for number in ngrams[place])
        lines.fail(f"each {n}-gram once", first + place, found)
    probs = _power(np.minimum(log_probs, 0.0))
    return ArpaSection(ngrams, probs, _power(np.array(log_backoff)))


def _at_most(limit: float, field: bytes) -> float:
    value = float(field)
    if not value <= limit:  # Not a number is not at most anything.
        raise ValueError
    return value


def _power(log10: np.ndarray) -> np.ndarray:
    return np.where(log10 <= _ZERO, 0.0, np.power(10.0, log10))
