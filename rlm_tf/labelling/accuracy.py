"""A classifier's accuracy, from few labels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rlm_tf.checks import check_integer, check_range
from rlm_tf.labelling.intervals import binomial_interval

_MOST_STRATA, _LEAST_OF_STRATUM = 5, 8
# Of a document that a model is quite sure of, so that such are looked at, too.
_LEAST_SPREAD = 0.1
# Draws that a stratum's share is shrunk by; simple draws that one may be worth.
_PRIOR, _MOST_EFFECTIVE = 1.0, 4.0


class ToLabel(NamedTuple):
    """Documents to be labelled by hand.

    Attributes:
        indices: int64 `[M]`, which; no document twice.
        strata: int64 `[M]`, the group of confidence that each is of.
        stratum_sizes: int64 `[H]`, documents of each group.
    """

    indices: np.ndarray
    strata: np.ndarray
    stratum_sizes: np.ndarray


def choose_to_label(confidence: npt.ArrayLike, count: int, *, seed: int) -> ToLabel:
    """Chooses documents whose true labels tell most of a classifier's accuracy.

    Documents are sorted by confidence and cut into strata of equal numbers of expected
    mistakes' spread (square roots of c (1 - c), Dalenius and Hodges 1959), of each of
    which as many are drawn (about Neyman's allocation), without replacement.

    Args:
        confidence: P(prediction is right), or any score in [0, 1], `[N]`.
        count: M, how many; all if there are fewer documents.
        seed: Of the draw.

    Raises:
        ValueError: If there is no document, or a confidence is no number in [0, 1].
    """
    name = "choose_to_label"
    scores = np.asarray(confidence, np.float64)
    check_integer(name, "count", count, 1)
    check_integer(name, "seed", seed, 0)
    if scores.ndim != 1 or not scores.size:
        raise ValueError(f"{name}: `confidence` must be [N], found {scores.shape}.")
    if not ((scores >= 0) & (scores <= 1)).all():
        raise ValueError(f"{name}: `confidence` must lie in [0, 1].")
    count = min(count, len(scores))
    order = np.argsort(scores, kind="stable")
    groups = confidence_strata(scores, count)
    sizes = np.bincount(groups)
    draws = _allocated(sizes, count)
    rng = np.random.default_rng(seed)
    chosen, of = [], []
    for group, own in enumerate(draws):
        rows = order[groups[order] == group]
        chosen.append(rng.choice(rows, own, replace=False))
        of.append(np.full(own, group))
    return ToLabel(np.concatenate(chosen).astype(np.int64), np.concatenate(of), sizes)


def confidence_strata(confidence: npt.ArrayLike, count: int) -> np.ndarray:
    """Returns the stratum of every document, int64 `[N]`, as `choose_to_label` has it.

    Args:
        confidence: As there.
        count: How many are to be labelled, which says how many strata there are.
    """
    scores = np.asarray(confidence, np.float64)
    order = np.argsort(scores, kind="stable")
    strata = max(min(_MOST_STRATA, min(count, len(scores)) // _LEAST_OF_STRATUM), 1)
    spread = np.sqrt(scores * (1 - scores))[order]
    # A part of each document is alike, so that sure ones are looked at, too.
    spread = spread + _LEAST_SPREAD
    parts = np.cumsum(spread) / spread.sum()
    # With few documents a stratum may be skipped: numbers have no gaps.
    cut = np.minimum((parts * strata - 1e-9).astype(np.int64), strata - 1)
    _, groups = np.unique(cut, return_inverse=True)
    found = np.empty(len(scores), np.int64)
    found[order] = groups
    return found


def _allocated(sizes: np.ndarray, count: int) -> np.ndarray:
    """Returns draws of each stratum: as many of each, as far as there are so many."""
    draws = np.zeros(len(sizes), np.int64)
    while count:
        open_ = np.flatnonzero(draws < sizes)
        share = max(count // len(open_), 1)
        for group in open_[: count if share == 1 else None]:
            own = min(share, sizes[group] - draws[group], count)
            draws[group] += own
            count -= own
    return draws


class Accuracy(NamedTuple):
    """An accuracy, and how sure it is.

    Attributes:
        value: Share that is right.
        low: Of the interval.
        high: Likewise.
    """

    value: float
    low: float
    high: float


def accuracy_from_labels(
    correct: npt.ArrayLike,
    strata: npt.ArrayLike,
    stratum_sizes: npt.ArrayLike,
    *,
    level: float = 0.95,
) -> Accuracy:
    """Estimates a classifier's accuracy from a stratified sample.

    The mean of the strata's shares by their sizes, and an interval as of so many simple
    draws as have its variance (Korn and Graubard 1998), each stratum's share shrunk a
    little towards the whole, as few draws that are all right say little. It is of the
    documents that there are: of a point where all were drawn.

    Args:
        correct: bool `[M]`, whether the prediction was right.
        strata: int `[M]`, of `choose_to_label`; all 0 of a simple sample.
        stratum_sizes: int `[H]`.
        level: Of the interval, in (0, 1).

    Raises:
        ValueError: If shapes do not fit, or a stratum that has documents has no draw.
    """
    name = "accuracy_from_labels"
    check_range(name, 1e-9, 1 - 1e-9, level=level)
    right = np.asarray(correct, np.float64)
    of, sizes = np.asarray(strata), np.asarray(stratum_sizes, np.float64)
    if right.ndim != 1 or right.shape != of.shape or not right.size:
        raise ValueError(
            f"{name}: `correct` and `strata` must be [M], M > 0, found "
            f"{list(right.shape)} and {list(of.shape)}."
        )
    if of.min() < 0 or of.max() >= len(sizes):
        raise ValueError(
            f"{name}: `strata` must lie in 0 to {len(sizes) - 1}, found "
            f"{np.unique(of).tolist()}."
        )
    draws = np.bincount(of, minlength=len(sizes))
    empty = np.flatnonzero((sizes > 0) & (draws == 0))
    if empty.size:
        raise ValueError(f"{name}: there is no draw of stratum {int(empty[0])}.")
    weights = sizes / sizes.sum()
    used = draws > 0
    sums = np.bincount(of, weights=right, minlength=len(sizes))
    means = np.where(used, sums / np.maximum(draws, 1), 0.0)
    value = float(np.clip(np.sum(weights * means), 0.0, 1.0))
    number = int(draws.sum())
    if np.all(draws >= sizes):
        # Of documents that were all seen nothing is left open.
        return Accuracy(value, value, value)
    if used.sum() == 1:
        low, high = binomial_interval(value * number, number, level=level)
        return Accuracy(value, low, high)
    whole = (sums.sum() + 0.5) / (number + 1)
    shrunk = (sums + _PRIOR * whole) / (draws + _PRIOR)
    unseen = np.maximum(1 - draws / np.maximum(sizes, 1), 0.0)
    of_stratum = unseen * shrunk * (1 - shrunk) / np.maximum(draws, 1)
    variance = float(np.sum(np.where(used, weights**2 * of_stratum, 0.0)))
    middle = float(np.sum(weights * np.where(used, shrunk, 0.0)))
    simple = middle * (1 - middle)
    effective = simple / variance if variance > 0 else float(number)
    effective = min(effective, _MOST_EFFECTIVE * number)
    low, high = binomial_interval(value * effective, effective, level=level)
    return Accuracy(value, low, high)
