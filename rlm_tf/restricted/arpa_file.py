"""Parses ARPA files, the n-gram format that KenLM and SRILM share."""

from __future__ import annotations

import dataclasses
import gzip
import os
import re
import zlib
from typing import NoReturn

import numpy as np

_ZERO = -99.0  # Both tools write this log10 for probability zero.
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
    """The lines of a file and the error that names one of them."""

    def __init__(self, path: str, lines: list[bytes]) -> None:
        self.path = path
        self.lines = lines
        self.next = 0

    def fail(self, index: int, expected: str) -> NoReturn:
        if index < len(self.lines):
            shown = self.lines[index][:60].decode("utf-8", "backslashreplace")
            found = repr(shown)
        else:
            found = "the end of the file"
        raise ValueError(
            f"{self.path}, line {index + 1}: expected {expected}, found {found}."
        )

    def skip_blank(self) -> bytes | None:
        """Moves to the next line that is not blank and returns it stripped."""
        while self.next < len(self.lines):
            line = self.lines[self.next].strip()
            if line:
                return line
            self.next += 1
        return None


def parse_arpa(path: str | os.PathLike[str]) -> ArpaFile:
    """Reads an ARPA file, plain or gzipped (by its content, not its name).

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is not a whole ARPA file; names the file and the line.
    """
    path = os.fspath(path)
    with open(path, "rb") as file:
        data = file.read()
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{path}: damaged gzip file ({error}).") from error
    lines = _Lines(path, data.split(b"\n"))
    counts = _parse_header(lines)
    word_numbers: dict[bytes, int] = {}
    sections = []
    for n, count in enumerate(counts, start=1):
        title = b"\\%d-grams:" % n
        if lines.skip_blank() != title:
            lines.fail(lines.next, f"'{title.decode()}'")
        lines.next += 1
        lines.skip_blank()
        sections.append(_parse_section(lines, n, count, word_numbers))
    if lines.skip_blank() != b"\\end\\":
        lines.fail(lines.next, r"'\end\'")
    return ArpaFile(list(word_numbers), sections)


def _parse_header(lines: _Lines) -> list[int]:
    while lines.skip_blank() not in (b"\\data\\", None):
        lines.next += 1  # Some tools write comments first.
    if lines.next >= len(lines.lines):
        lines.fail(lines.next, r"'\data\'")
    lines.next += 1
    counts: list[int] = []
    while match := _COUNT.fullmatch(lines.skip_blank() or b""):
        if int(match[1]) != len(counts) + 1:
            lines.fail(lines.next, f"'ngram {len(counts) + 1}=<count>'")
        counts.append(int(match[2]))
        lines.next += 1
    if not counts:
        lines.fail(lines.next, "'ngram 1=<count>'")
    return counts


def _parse_section(
    lines: _Lines, n: int, count: int, word_numbers: dict[bytes, int]
) -> ArpaSection:
    first = lines.next
    # The header may promise more than there is: let the lists grow with the lines.
    numbers: list[int] = []
    log_probs: list[float] = []
    log_backoff: list[float] = []
    missing = float("nan")
    for index, line in enumerate(lines.lines[first : first + count], start=first):
        fields = line.split()
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
                index,
                f"a log10 probability (at most 0), {n} word(s) and perhaps the log10 "
                "of a back-off weight",
            )
        words = fields[1 : n + 1]
        if n == 1:
            if words[0] in word_numbers:
                lines.fail(index, "each word once")
            word_numbers[words[0]] = len(word_numbers)
        try:
            numbers.extend([word_numbers[word] for word in words])
        except KeyError:
            lines.fail(index, "words that are among the 1-grams")
    if len(log_probs) < count:
        lines.fail(len(lines.lines), f"{count} {n}-grams")
    lines.next = first + count
    ngrams = np.array(numbers, np.int64).reshape(-1, n)
    order = np.lexsort(ngrams.T)
    repeated = np.flatnonzero((ngrams[order[1:]] == ngrams[order[:-1]]).all(axis=1))
    if len(repeated):
        lines.fail(first + int(order[repeated[0] + 1]), f"each {n}-gram once")
    probs = _power(np.minimum(log_probs, 0.0))
    return ArpaSection(ngrams, probs, _power(np.array(log_backoff)))


def _at_most(limit: float, field: bytes) -> float:
    value = float(field)
    if not value <= limit:  # Not a number is not at most anything.
        raise ValueError
    return value


def _power(log10: np.ndarray) -> np.ndarray:
    return np.where(log10 <= _ZERO, 0.0, np.power(10.0, log10))
