"""How often a word is noised, and by what: the probabilities behind `Noising`."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from rlm_tf.checks import checked_tokens
from rlm_tf.restricted.ngrams.discounts import counts_of_counts, modified_discounts

Kind = Literal["blank", "unigram", "bigram-kn"]
Discounting = Literal["constant", "absolute", "modified"]
Sides = Literal["inputs", "targets", "both"]
Variant = Literal["paper", "authors"]


class BigramStatistics(NamedTuple):
    """Counts of the bigrams of one token stream.

    Attributes:
        counts: c(x), how often x is a context, int64 `[V]`.
        types: Number of distinct successors of x seen once, twice, three times or
            more, int64 `[V, 3]`.
        continuations: N1+(. w), number of distinct contexts of w, int64 `[V]`.
        unigrams: How often w occurs, int64 `[V]`.
        types_by_count: Number of bigram types seen exactly 1, 2, 3, 4 times, int64
            `[4]`.
    """

    counts: np.ndarray
    types: np.ndarray
    continuations: np.ndarray
    unigrams: np.ndarray
    types_by_count: np.ndarray


def bigram_statistics(tokens: np.ndarray, vocabulary_size: int) -> BigramStatistics:
    """Counts the bigrams of a stream of token ids `[N]`, across line ends.

    Raises:
        ValueError: If the tokens are fewer than two or outside the vocabulary.
    """
    tokens = checked_tokens("Noising", tokens, vocabulary_size)
    if tokens.size < 2:
        raise ValueError(
            f"Noising: `tokens` must hold at least two ids, found {tokens.size}."
        )
    pairs, counts = np.unique(
        tokens[:-1] * vocabulary_size + tokens[1:], return_counts=True
    )
    contexts, words = np.divmod(pairs, vocabulary_size)
    bins = np.minimum(counts, 3) - 1
    return BigramStatistics(
        counts=np.bincount(tokens[:-1], minlength=vocabulary_size),
        types=np.bincount(contexts * 3 + bins, minlength=3 * vocabulary_size).reshape(
            -1, 3
        ),
        continuations=np.bincount(words, minlength=vocabulary_size),
        unigrams=np.bincount(tokens, minlength=vocabulary_size),
        types_by_count=counts_of_counts(counts),
    )


def noising_probabilities(
    statistics: BigramStatistics, gamma0: float, discounting: Discounting
) -> np.ndarray:
    """Returns gamma(x), the probability of noising where the input is x.

    constant: `gamma0`
    absolute: `gamma0 N1+(x .) / c(x)`
    modified: `gamma0 [D1 N1(x .) + D2 N2(x .) + D3+ N3+(x .)] / c(x)`

    A word that is no context in the training text has `gamma0` in every case, as all
    of the mass of an unseen context goes to the back-off distribution. Source: Xie et
    al. 2017, section 3.3.

    Returns:
        float64 `[V]`.
    """
    if discounting == "constant":
        return np.full(statistics.counts.shape, float(gamma0))
    discounts = np.ones(3)
    if discounting == "modified":
        discounts = modified_discounts(statistics.types_by_count)
    mass = statistics.types @ discounts
    seen = statistics.counts > 0
    return gamma0 * np.where(seen, mass / np.maximum(statistics.counts, 1), 1.0)


def replacement_probabilities(
    statistics: BigramStatistics, kind: Kind, blank_id: int | None, variant: Variant
) -> np.ndarray:
    """Returns q(w), the distribution that noise is drawn from.

    blank: the token `blank_id`
    unigram: `c(w) / N`
    bigram-kn: `N1+(. w) / N1+(. .)`; with `variant="authors"` a word without a
        context (the first of the text, if it never recurs) counts as having one

    Returns:
        float64 `[V]`, sums to 1.
    """
    if kind == "blank":
        weights = np.zeros(statistics.unigrams.shape)
        weights[blank_id] = 1.0
    elif kind == "unigram":
        weights = statistics.unigrams.astype(np.float64)
    else:
        weights = statistics.continuations.astype(np.float64)
        if variant == "authors":
            weights[(statistics.continuations == 0) & (statistics.unigrams > 0)] = 1.0
    return weights / weights.sum()


def expected_counts(
    counts: np.ndarray, gamma: np.ndarray, q: np.ndarray, sides: Sides
) -> np.ndarray:
    """Returns the bigram counts that a learner sees in expectation under noising.

    With context x, prediction y, counts c and c(x) = sum_y c(x, y) (Appendix B.1):

    (a) inputs: `[1 - gamma(x)] c(x,y) + q(x) sum_x' gamma(x') c(x',y)`
    (b) targets: `[1 - gamma(x)] c(x,y) + q(y) gamma(x) c(x)`
    (c) both: `[1 - gamma(x)] c(x,y) + q(x) q(y) sum_x' gamma(x') c(x')`

    Args:
        counts: c, `[V, V]`, rows are contexts.
        gamma: `[V]`, see `noising_probabilities`.
        q: `[V]`, see `replacement_probabilities`.
        sides: What is noised.

    Returns:
        float64 `[V, V]` with the same total as `counts`.
    """
    noised = gamma[:, None] * counts
    if sides == "inputs":
        moved = q[:, None] * noised.sum(axis=0)
    elif sides == "targets":
        moved = noised.sum(axis=1)[:, None] * q
    else:
        moved = np.outer(q, q) * noised.sum()
    return counts - noised + moved
