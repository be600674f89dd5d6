"""Noising probabilities and expected counts by plain loops in float64."""

from __future__ import annotations

import collections
import itertools


def bigram_counts(tokens: list[int]) -> collections.Counter[tuple[int, int]]:
    """Counts the pairs of neighbours."""
    return collections.Counter(itertools.pairwise(tokens))


def gamma(tokens: list[int], word: int, gamma0: float, discounting: str) -> float:
    """Probability of noising after `word`, by going through its successors."""
    counts = bigram_counts(tokens)
    n = [sum(1 for c in counts.values() if c == r) for r in range(5)]
    y = n[1] / (n[1] + 2 * n[2])
    total, mass = 0, 0.0
    for (context, _), count in counts.items():
        if context != word:
            continue
        total += count
        if discounting == "absolute":
            mass += 1
        else:
            r = min(count, 3)
            mass += r - (r + 1) * y * n[r + 1] / n[r]
    return gamma0 * mass / total


def continuation(tokens: list[int], word: int) -> float:
    """N1+(. w) / N1+(. .)."""
    types = set(bigram_counts(tokens))
    return sum(1 for _, w in types if w == word) / len(types)


def expected_counts(
    counts: dict[tuple[int, int], float],
    gamma_of: list[float],
    q: list[float],
    sides: str,
) -> dict[tuple[int, int], float]:
    """Expected counts by following every occurrence through all its outcomes."""
    size = len(q)
    result: dict[tuple[int, int], float] = collections.defaultdict(float)
    for (x, y), count in counts.items():
        result[x, y] += count * (1 - gamma_of[x])
        for u, w in itertools.product(range(size), repeat=2):
            p = gamma_of[x] * q[u] * q[w]
            new = {"inputs": (u, y), "targets": (x, w), "both": (u, w)}[sides]
            result[new] += count * p
    return result
