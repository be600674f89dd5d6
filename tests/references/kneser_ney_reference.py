"""Smoothed n-gram models from their definitions, in fractions and one word a time.

Nothing is shared between calls: every probability counts the stream again.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction


def _grams(tokens: Sequence[int], n: int) -> list[tuple[int, ...]]:
    return [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]


def _count(tokens: Sequence[int], gram: tuple[int, ...], order: int) -> int:
    """Occurrences at the highest order, distinct preceding words below it."""
    if len(gram) == order:
        return _grams(tokens, len(gram)).count(gram)
    return len({g[0] for g in _grams(tokens, len(gram) + 1) if g[1:] == gram})


def _discounts(tokens: Sequence[int], n: int, order: int, kind: str) -> list[Fraction]:
    counts = [_count(tokens, gram, order) for gram in set(_grams(tokens, n))]
    n1, n2, n3, n4 = (counts.count(r) for r in (1, 2, 3, 4))
    y = Fraction(n1, n1 + 2 * n2) if n1 else Fraction(0)
    if kind == "absolute" or not n1:
        return [Fraction(0), y, y, y]
    result = [Fraction(0)]
    for r, here, above in ((1, n1, n2), (2, n2, n3), (3, n3, n4)):
        formula = r - (r + 1) * y * Fraction(above, here) if here and above else y
        result.append(formula if formula >= 0 else y)
    return [min(max(d, Fraction(0)), Fraction(r)) for r, d in enumerate(result)]


def kneser_ney(
    tokens: Sequence[int],
    context: tuple[int, ...],
    word: int,
    vocabulary_size: int,
    kind: str = "modified",
    order: int | None = None,
) -> Fraction:
    """Returns `P(word | context)`; `order` is that of the whole model."""
    order = order or len(context) + 1
    words = range(vocabulary_size)
    counts = [_count(tokens, (*context, w), order) for w in words]
    total = sum(counts)
    if not context:
        return Fraction(counts[word], total)
    lower = kneser_ney(tokens, context[1:], word, vocabulary_size, kind, order)
    if total == 0:
        return lower
    discounts = _discounts(tokens, len(context) + 1, order, kind)
    taken = [discounts[min(c, 3)] for c in counts]
    kept = max(counts[word] - taken[word], Fraction(0))
    return kept / total + sum(taken, Fraction(0)) / total * lower


def maximum_likelihood(
    tokens: Sequence[int], context: tuple[int, ...], word: int, vocabulary_size: int
) -> Fraction:
    """Returns `c(context word) / c(context)` for the longest suffix that was seen."""
    n = len(context) + 1
    following = [gram[-1] for gram in _grams(tokens, n) if gram[:-1] == context]
    if following:
        return Fraction(following.count(word), len(following))
    return maximum_likelihood(tokens, context[1:], word, vocabulary_size)


def add_k(
    tokens: Sequence[int],
    context: tuple[int, ...],
    word: int,
    vocabulary_size: int,
    k: Fraction,
) -> Fraction:
    """Returns `(c(context word) + k) / (c(context) + k V)`."""
    n = len(context) + 1
    following = [gram[-1] for gram in _grams(tokens, n) if gram[:-1] == context]
    return Fraction(following.count(word) + k, len(following) + k * vocabulary_size)
