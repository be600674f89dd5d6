"""How many words to delete, so that seeds go and other telling words stay."""

from __future__ import annotations

import decimal
import fractions
import math

import numpy as np
import numpy.typing as npt

from rlm_tf.checks import check_integer, check_range


def best_deletion_ratio(num_seeds: float, num_indicative: float) -> float:
    """Returns the share of words to delete that makes `seed_deletion_rate` largest.

        p* = (n_s / (n_s + n_c))^(1 / n_c)                      (Dong 2025, Eq. 3.3)

    Args:
        num_seeds: n_s, seeds of a document, positive; 1 as a rule.
        num_indicative: n_c, its other words that tell the class, positive.

    Raises:
        ValueError: If a number is not positive.
    """
    name = "best_deletion_ratio"
    check_range(
        name, 1e-12, math.inf, num_seeds=num_seeds, num_indicative=num_indicative
    )
    # Exact also where either is tiny.
    return math.exp(-math.log1p(num_indicative / num_seeds) / num_indicative)


def seed_deletion_rate(
    ratio: npt.ArrayLike, num_seeds: npt.ArrayLike, num_indicative: npt.ArrayLike
) -> np.ndarray:
    """Returns how often all seeds go and some other word that tells the class stays.

        r = p^(n_s) (1 - p^(n_c))                               (Dong 2025, Eq. 3.2)

    where each word is deleted with probability p; `fixed_count_deletion_rate` is of a
    fixed number of words. Exact also where p is close to 1. Arguments broadcast.

    Args:
        ratio: p, in [0, 1].
        num_seeds: n_s.
        num_indicative: n_c.

    Returns:
        float64, in [0, 1].

    Raises:
        ValueError: If a ratio lies outside [0, 1], or a number is negative.
    """
    p, n_s, n_c = (
        np.asarray(x, np.float64) for x in (ratio, num_seeds, num_indicative)
    )
    if not ((p >= 0) & (p <= 1)).all():
        raise ValueError(f"seed_deletion_rate: `ratio` must lie in [0, 1], found {p}.")
    if not ((n_s >= 0).all() and (n_c >= 0).all()):
        raise ValueError(
            "seed_deletion_rate: `num_seeds` and `num_indicative` must not be negative."
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        some_stays = -np.expm1(np.where(n_c > 0, n_c * np.log(p), 0.0))
    # 0.0, and not -0.0, where none does.
    return p**n_s * some_stays + 0.0


def fixed_count_deletion_rate(
    length: int, deleted: int, num_seeds: int, num_indicative: int
) -> float:
    """Returns the same rate where a fixed number of words is deleted, all sets alike.

        [C(n - n_s, m - n_s) - C(n - n_s - n_c, m - n_s - n_c)] / C(n, m)

    Args:
        length: n, words of the document.
        deleted: m, how many are deleted.
        num_seeds: n_s.
        num_indicative: n_c.

    Raises:
        ValueError: If there are more seeds and indicative words than words, or more
            are deleted than there are.
    """
    name = "fixed_count_deletion_rate"
    for argument, value in (
        ("length", length),
        ("deleted", deleted),
        ("num_seeds", num_seeds),
        ("num_indicative", num_indicative),
    ):
        check_integer(name, argument, value, 0)
    if deleted > length or num_seeds + num_indicative > length:
        raise ValueError(
            f"{name}: of {length} words {deleted} cannot be deleted, or {num_seeds} be "
            f"seeds and {num_indicative} indicative."
        )
    kept = length - deleted
    # Which words stay: none of the seeds; of those sets, none with an indicative one.
    no_seed = math.comb(length - num_seeds, kept)
    nothing = math.comb(length - num_seeds - num_indicative, kept)
    rate = fractions.Fraction(no_seed - nothing, math.comb(length, kept))
    return float(rate)


def deletion_counts(
    lengths: npt.ArrayLike, ratio: float, *, keep: int = 1
) -> np.ndarray:
    """Returns how many words of each document are deleted: min(ceil(p n), n - keep).

    The ratio counts as the decimal that it is written as: 0.07 of 100 is 7, where the
    product of the floating-point numbers is a little more.

    Args:
        lengths: n, int `[N]`.
        ratio: p, in [0, 1].
        keep: Words that stay at least, where there are so many.

    Returns:
        int64 `[N]`, at least 0.

    Raises:
        ValueError: If the ratio lies outside [0, 1], or a length is negative.
        TypeError: If lengths are no integers.
    """
    name = "deletion_counts"
    check_range(name, 0.0, 1.0, ratio=ratio)
    check_integer(name, "keep", keep, 0)
    n = np.asarray(lengths)
    if not np.issubdtype(n.dtype, np.integer) and n.size:
        raise TypeError(f"{name}: `lengths` must be integers, found {n.dtype}.")
    if n.size and n.min() < 0:
        raise ValueError(f"{name}: `lengths` must not be negative, found {n.min()}.")
    # Of a NumPy number the shortest decimal of its own precision.
    written = str(ratio) if isinstance(ratio, np.floating) else repr(float(ratio))
    exact = fractions.Fraction(decimal.Decimal(written))
    found, places = np.unique(n, return_inverse=True)
    counts = [
        max(min(math.ceil(exact * int(size)), int(size) - keep), 0) for size in found
    ]
    return np.array(counts, np.int64)[places].reshape(n.shape)
