"""Conversion between back-off tables and lists of n-grams, as ARPA files hold them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rlm_tf.restricted.ngrams.arpa_file import ArpaSection
from rlm_tf.restricted.ngrams.backoff_tables import BackoffLevel, BackoffTables

Ngrams = tuple[np.ndarray, np.ndarray]
SumsFound = Callable[[np.ndarray, np.ndarray], None]


def tables_from_ngrams(
    base: np.ndarray,
    entries: list[Ngrams],
    contexts: list[Ngrams],
    *,
    normalize: bool,
    sums_found: SumsFound | None = None,
) -> BackoffTables:
    """Builds the tables of a model with `P(w | u) = p(u, w)` or else `b(u) P(w | u')`.

    Suffixes of a context that are not contexts themselves are added with weight 1.

    Args:
        base: Probabilities without context, float64 `[V]`, of positive sum.
        entries: For n = 2, 3, ...: ids `[E, n]`, all different, and `p` `[E]`.
        contexts: For m = 1, 2, ...: ids `[C, m]`, all different, and `b` `[C]`.
        normalize: Whether each distribution is divided by its sum.
        sums_found: Told what each context's distribution sums to, before it is
            normalised: contexts `[C, m]` and sums `[C]`, for every length m.
    """
    size = len(base)
    wanted = _closed_contexts(entries, contexts)
    # What each context of the level below summed to before it was normalised, and sums
    # to in the tables.
    sums = np.array([base.sum()])
    if sums_found is not None:
        sums_found(np.zeros([1, 0], np.int64), sums)
    kept = np.ones(1) if normalize else sums
    tables = BackoffTables(base / sums[0] if normalize else base, [])
    for (ngrams, probs), (context_ids, weights), closed in zip(
        entries, contexts, wanted, strict=True
    ):
        keys = np.unique(_keys(tables, closed))
        below = keys // size
        backoff = np.ones(len(keys))
        backoff[np.searchsorted(keys, _keys(tables, context_ids))] = weights
        numbers = np.searchsorted(keys, _keys(tables, ngrams[:, :-1]))
        shorter = tables.context_numbers(ngrams[:, 1:-1])
        lower = tables.word_probs(shorter, ngrams[:, -1])
        if normalize:
            backoff = backoff * sums[below]
        seen = np.bincount(numbers, weights=probs, minlength=len(keys))
        covered = np.bincount(numbers, weights=lower, minlength=len(keys))
        total = seen + backoff * np.maximum(kept[below] - covered, 0.0)
        if sums_found is not None:
            _, place = np.unique(_keys(tables, closed), return_index=True)
            sums_found(closed[place], total)
        if normalize:
            # Words outside the vocabulary may have had everything: then back off.
            empty = total <= 0
            backoff[empty] = total[empty] = sums[below][empty]
            probs = np.where(empty[numbers], lower * total[numbers], probs)
            backoff, probs = backoff / total, probs / total[numbers]
        sums = np.append(total, 1.0)
        kept = np.ones_like(sums) if normalize else sums
        extra = probs - backoff[numbers] * lower
        order = np.argsort(numbers * size + ngrams[:, -1])
        level = BackoffLevel.from_entries(
            keys, backoff, numbers[order], ngrams[order, -1], extra[order]
        )
        tables = BackoffTables(tables.base, [*tables.levels, level])
    return tables


def ngrams_from_tables(tables: BackoffTables) -> list[ArpaSection]:
    """Returns all n-grams in ids: those of the tables, and every context.

    The probabilities are whole (`P(w | u)`, not the extra ones).
    """
    size = len(tables.base)
    sections = []
    contexts = [np.zeros((1, 0), np.int64)]
    for n in range(1, len(tables.levels) + 2):
        shorter = BackoffTables(tables.base, tables.levels[: n - 1])
        entries = np.arange(size)
        if n > 1:
            level = shorter.levels[-1]
            entries = level.entry_contexts() * size + level.words
        if n <= len(tables.levels):
            keys = tables.levels[n - 1].keys[:-1]
            ids = np.column_stack([keys % size, contexts[n - 1][keys // size]])
            contexts.append(ids)
            prefixes = shorter.context_numbers(ids[:, :-1])
            number = prefixes[-1] if prefixes else np.zeros(len(ids), np.int64)
            followed = number * size + ids[:, -1]
            entries = np.union1d(entries, followed)
        words = entries % size
        ngrams = np.column_stack([contexts[n - 1][entries // size], words])
        numbers = shorter.context_numbers(ngrams[:, :-1])
        backoff = np.full(len(entries), np.nan)
        if n <= len(tables.levels):
            backoff[np.searchsorted(entries, followed)] = tables.levels[n - 1].backoff[
                :-1
            ]
        probs = np.maximum(shorter.word_probs(numbers, words), 0.0)
        sections.append(ArpaSection(ngrams, probs, backoff))
    return sections


def _keys(tables: BackoffTables, contexts: np.ndarray) -> np.ndarray:
    """Returns the keys of contexts one word longer than the longest of `tables`."""
    numbers = tables.context_numbers(contexts[:, 1:])
    longest = numbers[-1] if numbers else np.zeros(len(contexts), np.int64)
    return longest * len(tables.base) + contexts[:, 0]


def _closed_contexts(entries: list[Ngrams], contexts: list[Ngrams]) -> list[np.ndarray]:
    """Returns, per length, the contexts, and those that other n-grams imply."""
    closed: list[np.ndarray] = []
    for (ngrams, _), (given, _) in zip(entries[::-1], contexts[::-1], strict=True):
        parts = [given, ngrams[:, :-1]]
        if closed:
            parts += [closed[-1][:, 1:], closed[-1][:, :-1]]
        closed.append(np.concatenate(parts))
    return closed[::-1]
