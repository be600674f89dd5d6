"""Types and counts of the n-grams of one token stream, as a trie of suffixes.

Contexts are numbered so that a context's number determines that of every suffix of it:
the key of a context of m words is `number of its last m - 1 words * V + first word`,
and its number is the rank of that key among the contexts of m words. Ranks instead of
packed words keep keys far below 2**63 at any vocabulary size and order.
"""

from __future__ import annotations

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class NgramLevel:
    """The n-grams of one order n, sorted by (context, word).

    Attributes:
        contexts: Number of the context (the first n - 1 words), int64 `[E]`.
        words: Last word of each n-gram, int64 `[E]`.
        raw_counts: Occurrences in the stream, int64 `[E]`, at least 1.
        continuation_counts: Distinct words that precede the n-gram, `N1+(. u w)`, int64
            `[E]`. Zero for an n-gram that occurs only at the start of the stream.
            Unknown, and filled with `raw_counts`, for the highest order.
        suffixes: For each n-gram, the position in the level below of its last n - 1
            words, int64 `[E]`. Empty for n = 1.
    """

    contexts: np.ndarray
    words: np.ndarray
    raw_counts: np.ndarray
    continuation_counts: np.ndarray
    suffixes: np.ndarray


@dataclasses.dataclass(frozen=True)
class NgramCounts:
    """All n-grams of orders 1..n of a stream.

    Attributes:
        context_keys: For m = 1..n-1 words, the contexts' sorted keys, int64 `[C_m]`.
        levels: The n-grams of order 1..n.
    """

    context_keys: list[np.ndarray]
    levels: list[NgramLevel]


def count_ngrams(tokens: np.ndarray, order: int, vocabulary_size: int) -> NgramCounts:
    """Counts the n-grams of orders 1..`order`; a context is what some word follows.

    Args:
        tokens: int64 ids `[T]`, `T >= order`.
        order: Highest order n.
        vocabulary_size: V.
    """
    size = vocabulary_size
    context_keys: list[np.ndarray] = []
    # `numbers[i]`: that of the context of m words that ends before position m + i.
    numbers = np.zeros(len(tokens), np.int64)
    first_context = [0]
    for length in range(1, order):
        oldest = tokens[: len(tokens) - length]
        if length == 1:  # Counting is ten times as fast as sorting.
            seen = np.bincount(oldest, minlength=size) > 0
            keys, numbers = np.flatnonzero(seen), (np.cumsum(seen) - 1)[oldest]
        else:
            keys, numbers = np.unique(numbers[1:] * size + oldest, return_inverse=True)
        context_keys.append(keys)
        first_context.append(int(numbers[0]))
    ngrams, counts = np.unique(numbers * size + tokens[order - 1 :], return_counts=True)
    levels = []
    continuation = counts
    for n in range(order, 0, -1):
        contexts, words = np.divmod(ngrams, size)
        if n == 1:
            suffixes = np.zeros(0, np.int64)
            levels.append(NgramLevel(contexts, words, counts, continuation, suffixes))
            break
        parents = context_keys[n - 2] // size if n > 2 else np.zeros(1, np.int64)
        parents = parents[contexts] if n > 2 else np.zeros_like(contexts)
        # The n - 1 words that open the stream are the suffix of no n-gram.
        opening = first_context[n - 2] * size + tokens[n - 2]
        below, positions = np.unique(
            np.append(parents * size + words, opening), return_inverse=True
        )
        suffixes = positions[:-1]
        levels.append(NgramLevel(contexts, words, counts, continuation, suffixes))
        continuation = np.bincount(suffixes, minlength=len(below))
        lower = np.bincount(positions, weights=np.append(counts, 1))
        counts, ngrams = lower.astype(np.int64), below
    return NgramCounts(context_keys, levels[::-1])
