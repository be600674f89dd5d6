"""Kneser-Ney and other smoothed n-gram models, fitted to one token stream."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import keras
import numpy as np
import numpy.typing as npt

from rlm_tf.checks import check_integer, checked_tokens
from rlm_tf.restricted.ngrams.backoff_model import BackoffModel
from rlm_tf.restricted.ngrams.backoff_tables import BackoffLevel, BackoffTables
from rlm_tf.restricted.ngrams.discounts import (
    counts_of_counts,
    modified_discounts,
    single_discount,
)
from rlm_tf.restricted.ngrams.ngram_counts import NgramLevel, count_ngrams

SMOOTHINGS = ("modified", "absolute", "maximum_likelihood", "add_k")


@keras.saving.register_keras_serializable("rlm_tf")
class KneserNey(BackoffModel):
    """Interpolated Kneser-Ney n-grams, and simpler smoothings in the same form.

    For `"modified"` and `"absolute"`, with `u'` for `u` without its oldest word,

        P(w | u) = max(c(u, w) - D_{c(u, w)}, 0) / c(u) + gamma(u) P(w | u')
        gamma(u) = sum_w D_{c(u, w)} / c(u)

    where `c` counts occurrences at the highest order and, below it, the distinct words
    that precede `u w` (continuation counts). `"modified"` has three discounts an order
    (for counts of 1, 2, and 3 or more), `"absolute"` has one; those of lower orders are
    estimated from the continuation counts, as Chen and Goodman do. The recursion ends
    with the unsmoothed continuation unigram `N1+(. w) / N1+(. .)`: nothing is mixed
    with the uniform distribution unless `floor` asks for it, so a word that only opens
    the stream, or is not in it, has probability zero (`evaluation.tune_floor` finds a
    floor, `with_floor` puts it in). A context that was never seen gets the distribution
    of its longest seen suffix.

    `"maximum_likelihood"` is `c(u, w) / c(u)`, and the same for the longest seen suffix
    of an unseen context. `"add_k"` is `(c(u, w) + k) / (c(u) + k V)`. With `order` 1
    every smoothing but `"add_k"` gives the relative frequencies.

    The text is a single stream: n-grams cross sentence ends, nothing is padded.
    Sources: Kneser and Ney (1995); Chen and Goodman (1999); section 4.3 of the IMM
    paper, whose bigram model this is by default.

    Args:
        order: 1 to 6; 2 is a bigram model.
        smoothing: `"modified"`, `"absolute"`, `"maximum_likelihood"` or `"add_k"`.
        floor: Weight of the uniform distribution in `(1 - floor) P + floor / V`.
        add_k: What `"add_k"` adds to each count, positive.
        **kwargs: Arguments of `keras.layers.Layer`.

    Raises:
        ValueError: If an argument is out of its range.
    """

    def __init__(
        self,
        order: int = 2,
        smoothing: str = "modified",
        floor: float = 0.0,
        add_k: float = 1.0,
        **kwargs: Any,
    ) -> None:
        if order not in (1, 2, 3, 4, 5, 6):
            raise ValueError(f"KneserNey: `order` must be 1 to 6, found {order!r}.")
        if smoothing not in SMOOTHINGS:
            raise ValueError(
                f"KneserNey: `smoothing` must be one of {', '.join(SMOOTHINGS)}; found "
                f"{smoothing!r}."
            )
        if not add_k > 0:
            raise ValueError(f"KneserNey: `add_k` must be positive, found {add_k}.")
        super().__init__(order, floor=floor, **kwargs)
        self.smoothing = smoothing
        self.add_k = float(add_k)
        self._discounts: list[list[float]] | None = None

    # === Fitting ===

    def fit(self, tokens: npt.ArrayLike, vocabulary_size: int) -> KneserNey:
        """Counts the n-grams of a stream and fills the tables.

        Args:
            tokens: Integer ids `[T]`, at least `order` of them.
            vocabulary_size: V; every id is below it.

        Returns:
            This object.

        Raises:
            ValueError: If `tokens` is not such a stream, or if this object has tables.
        """
        check_integer("fit", "vocabulary_size", vocabulary_size, 1)
        stream = checked_tokens("fit", tokens, vocabulary_size)
        if len(stream) < self.order:
            raise ValueError(
                f"fit: a model of order {self.order} needs at least {self.order} "
                f"tokens, found {len(stream)}."
            )
        counts = count_ngrams(
            stream,
            self.order,
            int(vocabulary_size),
            continuations=self.smoothing in ("modified", "absolute"),
        )
        # The counts let go of it when they are done with it.
        del stream
        if self.smoothing == "add_k":
            tables = _add_k_tables(counts, vocabulary_size, self.add_k)
            self._discounts = []
        else:
            tables, self._discounts = _discounted_tables(
                counts, vocabulary_size, self.smoothing
            )
        self._take_tables(tables)
        return self

    # === Parameters ===

    @property
    def discounts(self) -> list[list[float]]:
        """Discounts of the counts 1, 2 and 3 or more, for orders 2..`order`.

        Raises:
            ValueError: If the model is not fitted.
        """
        self._known_vocabulary_size()
        return [list(discounts) for discounts in self._discounts or []]

    @property
    def continuation_probs(self) -> np.ndarray:
        """Distribution without context where the recursion ends, float64 `[V]`.

        `N1+(. w) / N1+(. .)` for Kneser-Ney models of order 2 and more.

        Raises:
            ValueError: If the model is not fitted.
        """
        return self.tables().base

    def _share_tables(self, other: Self) -> None:
        super()._share_tables(other)
        self._discounts = other._discounts

    # === Config ===

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "smoothing": self.smoothing,
            "add_k": self.add_k,
        }

    def get_build_config(self) -> dict[str, Any] | None:
        config = super().get_build_config()
        return config and {**config, "discounts": self.discounts}

    def build_from_config(self, config: dict[str, Any] | None) -> None:
        super().build_from_config(config)
        if config:
            self._discounts = config["discounts"]


def _discounted_tables(
    counts: Iterable[NgramLevel], vocabulary_size: int, smoothing: str
) -> tuple[BackoffTables, list[list[float]]]:
    """Returns tables and discounts per order; counts come from the highest order."""
    likelihood = smoothing == "maximum_likelihood"
    estimate = modified_discounts if smoothing == "modified" else single_discount
    levels: list[BackoffLevel] = []
    all_discounts: list[list[float]] = []
    for level in counts:
        keys, count = level.context_keys, level.counts
        if not len(keys):
            base = np.zeros(vocabulary_size)
            base[level.words] = count / count.sum()
            break
        discounts = np.zeros(3) if likelihood else estimate(counts_of_counts(count))
        discount = np.append(0.0, discounts)[np.minimum(count, 3)]
        total = np.bincount(level.contexts, weights=count, minlength=len(keys))
        # A context that only opens the stream has no continuation counts: back off.
        seen = total > 0
        safe = np.where(seen, total, 1.0)
        gamma = np.bincount(level.contexts, weights=discount, minlength=len(keys))
        gamma = np.where(seen, gamma / safe, 1.0)
        extra = np.maximum(count - discount, 0.0, out=discount)
        extra /= safe[level.contexts]
        levels.append(
            BackoffLevel.from_entries(keys, gamma, level.contexts, level.words, extra)
        )
        all_discounts.append(discounts.tolist())
        # Of the next level there is the whole of memory.
        del count, keys, discount, total, seen, safe, gamma, extra, level
    return BackoffTables(base, levels[::-1]), all_discounts[::-1]


def _add_k_tables(
    counts: Iterable[NgramLevel], vocabulary_size: int, add_k: float
) -> BackoffTables:
    """Backs off to the uniform distribution; shorter contexts stay empty."""
    added = add_k * vocabulary_size
    top, *lower = counts
    if not len(top.context_keys):
        base = np.full(vocabulary_size, add_k)
        base[top.words] += top.counts
        return BackoffTables(base / base.sum(), [])
    none = np.zeros(0, np.int64)
    levels = [
        BackoffLevel.from_entries(
            level.context_keys, np.ones(len(level.context_keys)), none, none, none
        )
        for level in lower[-2::-1]
    ]
    keys = top.context_keys
    occurrences = np.bincount(top.contexts, weights=top.counts, minlength=len(keys))
    total = occurrences + added
    extra = top.counts / total[top.contexts]
    levels.append(
        BackoffLevel.from_entries(keys, added / total, top.contexts, top.words, extra)
    )
    return BackoffTables(np.full(vocabulary_size, 1.0 / vocabulary_size), levels)
