"""The tables of a back-off n-gram model, and exact float64 look-ups in them.

`P(w | u) = e(u, w) + b(u) P(w | u')`, where `u'` is `u` without its oldest word, and
`e(u, w)`, the extra probability, is zero for n-grams that are not in the table; a
context that is not in the table has `b(u) = 1`. This is how interpolated models are
written. A model that replaces instead of adding (`P(w | u) = p(u, w)` for the n-grams
of the table, as in ARPA files) has `e(u, w) = p(u, w) - b(u) P(w | u')`. Adding is what
makes rows cheap: the table entries of all context lengths go into one sum.
"""

from __future__ import annotations

import dataclasses

import numpy as np

_END = np.iinfo(np.int64).max


@dataclasses.dataclass(frozen=True)
class BackoffLevel:
    """The contexts of one length m >= 1 and the words that follow them.

    The last context of every table is the unseen one: its key is the largest int64, it
    has no words, and its back-off weight is 1.

    Attributes:
        keys: Sorted keys of the contexts (see `ngram_counts`), int64 `[C + 1]`.
        backoff: Back-off weights, float64 `[C + 1]`.
        row_splits: Where the words of each context start, int64 `[C + 2]`.
        words: Words, ascending within a context, int32 `[E]`.
        extra: Their extra probabilities, float64 `[E]`.
    """

    keys: np.ndarray
    backoff: np.ndarray
    row_splits: np.ndarray
    words: np.ndarray
    extra: np.ndarray

    @classmethod
    def from_entries(
        cls,
        keys: np.ndarray,
        backoff: np.ndarray,
        contexts: np.ndarray,
        words: np.ndarray,
        extra: np.ndarray,
    ) -> BackoffLevel:
        """Appends the unseen context; entries are sorted by (context, word)."""
        per_context = np.bincount(contexts, minlength=len(keys) + 1)
        return cls(
            np.append(keys, _END).astype(np.int64),
            np.append(backoff, 1.0),
            np.concatenate([[0], np.cumsum(per_context)]).astype(np.int64),
            words.astype(np.int32),
            np.asarray(extra, np.float64),
        )

    def entry_contexts(self) -> np.ndarray:
        """Returns the context number of every entry, int64 `[E]`."""
        return np.repeat(np.arange(len(self.keys)), np.diff(self.row_splits))


@dataclasses.dataclass(frozen=True)
class BackoffTables:
    """A back-off model.

    Attributes:
        base: Probabilities without context, float64 `[V]`.
        levels: One `BackoffLevel` per context length 1..L.
    """

    base: np.ndarray
    levels: list[BackoffLevel]

    def context_numbers(self, contexts: np.ndarray) -> list[np.ndarray]:
        """Returns, per length 1..L, the numbers of the last words of each context.

        Args:
            contexts: int64 ids in `[0, V)`, `[N, L]`, oldest first.
        """
        numbers = np.zeros(len(contexts), np.int64)
        result = []
        for level, table in enumerate(self.levels, start=1):
            keys = numbers * len(self.base) + contexts[:, contexts.shape[1] - level]
            position = np.searchsorted(table.keys, keys)
            unseen = len(table.keys) - 1
            numbers = np.where(table.keys[position] == keys, position, unseen)
            result.append(numbers)
        return result

    def word_probs(self, numbers: list[np.ndarray], words: np.ndarray) -> np.ndarray:
        """Returns `P(word | context)`, float64 `[N]`.

        Args:
            numbers: Context numbers, as `context_numbers` returns them; a shorter list
                gives the probabilities given shorter contexts.
            words: int64 ids `[N]`.
        """
        result = self.base[words]
        for table, number in zip(self.levels, numbers, strict=False):
            result = table.backoff[number] * result
            if len(table.words):
                entries = table.entry_contexts() * len(self.base) + table.words
                keys = number * len(self.base) + words
                position = np.minimum(np.searchsorted(entries, keys), len(entries) - 1)
                result += np.where(entries[position] == keys, table.extra[position], 0)
        return result

    def rows(self, contexts: np.ndarray) -> np.ndarray:
        """Returns `P(. | context)`, float64 `[N, V]`, for `contexts` `[N, L]`."""
        result = np.tile(self.base, (len(contexts), 1))
        for table, numbers in zip(
            self.levels, self.context_numbers(contexts), strict=True
        ):
            result *= table.backoff[numbers][:, np.newaxis]
            for row, number in enumerate(numbers):
                part = slice(table.row_splits[number], table.row_splits[number + 1])
                result[row, table.words[part]] += table.extra[part]
        return result
