"""Types and counts of the n-grams of one token stream, as a trie of suffixes.

Contexts are numbered so that a context's number determines that of every suffix of it:
the key of a context of m words is `number of its last m - 1 words * V + first word`,
and its number is the rank of that key among the contexts of m words. Ranks instead of
packed words keep keys far below 2**63 at any vocabulary size and order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np


class NgramLevel(NamedTuple):
    """The n-grams of one order n, sorted by (context, word).

    Attributes:
        context_keys: Sorted keys of the contexts, int64 `[C]`; empty for n = 1.
        contexts: Number of the context (the first n - 1 words), int64 `[E]`.
        words: Last word of each n-gram, int32 `[E]`.
        counts: Occurrences in the stream, or distinct words that precede the n-gram,
            `N1+(. u w)`, integers `[E]`. Of these there may be none, for an n-gram that
            occurs only at the start of the stream; the highest order has occurrences.
    """

    context_keys: np.ndarray
    contexts: np.ndarray
    words: np.ndarray
    counts: np.ndarray


def count_ngrams(
    tokens: np.ndarray, order: int, vocabulary_size: int, *, continuations: bool = True
) -> Iterator[NgramLevel]:
    """Counts the n-grams of orders 1..`order`; a context is what some word follows.

    Args:
        tokens: int64 ids `[T]`, `T >= order`.
        order: Highest order n.
        vocabulary_size: V.
        continuations: Whether orders below the highest count the words in front, or
            occurrences.

    Yields:
        The levels, the highest first: each is made from the one above, and whoever
        needs one at a time keeps one in memory.
    """
    size = vocabulary_size
    context_keys, ngrams, counts, opening = _highest(tokens, order, size)
    del tokens
    for n in range(order, 1, -1):
        keys = context_keys.pop()
        contexts, words = ngrams // size, (ngrams % size).astype(np.int32)
        del ngrams
        yield NgramLevel(keys, contexts, words, counts)
        # Of the last n - 1 words; those that open the stream are of no n-gram.
        below = np.empty(len(words) + 1, np.int64)
        below[:-1] = (keys // size)[contexts] if n > 2 else 0
        del contexts, keys
        below *= size
        below[:-1] += words
        below[-1] = opening[n - 2]
        del words
        ngrams, places = _ranked(below)
        del below
        if continuations:
            counts = np.bincount(places[:-1], minlength=len(ngrams))
        else:
            weights = np.append(counts, 1)
            counts = np.bincount(places, weights=weights).astype(np.int64)
        del places
    none = np.zeros(0, np.int64)
    yield NgramLevel(none, np.zeros_like(ngrams), ngrams.astype(np.int32), counts)


def _highest(
    tokens: np.ndarray, order: int, size: int
) -> tuple[list[np.ndarray], np.ndarray, np.ndarray, list[int]]:
    """Returns keys of contexts by length, and the n-grams of the highest order.

    These are keys, `context's number * V + word`, with their counts; and for n = 2 and
    more the key of the n - 1 words that open the stream, the suffix of no n-gram.
    """
    context_keys: list[np.ndarray] = []
    # `numbers[i]`: that of the context of m words that ends before position m + i.
    numbers = np.zeros(len(tokens), np.int32)
    opening = []
    for length in range(1, order):
        opening.append(int(numbers[0]) * size + int(tokens[length - 1]))
        oldest = tokens[: len(tokens) - length]
        if length == 1:  # Counting is ten times as fast as sorting.
            seen = np.bincount(oldest, minlength=size) > 0
            keys = np.flatnonzero(seen)
            numbers = (np.cumsum(seen, dtype=np.int32) - 1)[oldest]
        else:
            keys, numbers = _ranked(_joined(numbers[1:], size, oldest))
        context_keys.append(keys)
    ngrams, counts = np.unique(
        _joined(numbers, size, tokens[order - 1 :]), return_counts=True
    )
    return context_keys, ngrams, counts, opening


def _joined(numbers: np.ndarray, size: int, words: np.ndarray) -> np.ndarray:
    """Returns `numbers * size + words`, one array in memory."""
    keys = numbers.astype(np.int64)
    keys *= size
    keys += words
    return keys


def _ranked(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the distinct keys, ascending, and the place of each among them.

    As `np.unique(keys, return_inverse=True)`, in half of its memory.
    """
    order = np.argsort(keys)
    ascending = keys[order]
    new = np.append(True, ascending[1:] != ascending[:-1])
    distinct = ascending[new]
    del ascending
    dtype = np.int32 if len(keys) < 2**31 else np.int64
    places = np.empty(len(keys), dtype)
    places[order] = np.cumsum(new, dtype=dtype) - 1
    return distinct, places
