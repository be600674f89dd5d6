"""In how many documents words are."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

# Documents whose words are counted at once: numbers of eight bytes are made of tokens.
_ROWS = 4096


def document_counts(
    tokens: npt.ArrayLike,
    size: int,
    groups: npt.ArrayLike | None = None,
    num_groups: int = 1,
) -> np.ndarray:
    """Returns in how many documents of each group each word is, int64 `[G, V]`.

    Args:
        tokens: int `[N, T]`, rows of ids from 0 to V - 1.
        size: V.
        groups: int `[N]`, from 0 on; None: all are one.
        num_groups: G.
    """
    rows = np.asarray(tokens)
    of = np.zeros(len(rows), np.int64) if groups is None else np.asarray(groups)
    found = np.zeros(num_groups * size, np.int64)
    for first in range(0, len(rows), _ROWS):
        own = rows[first : first + _ROWS]
        owner = np.arange(len(own), dtype=np.int64)[:, np.newaxis]
        distinct = np.unique(owner * size + own)
        words, owners = distinct % size, distinct // size
        keys = of[first : first + _ROWS][owners] * size + words
        found += np.bincount(keys, minlength=num_groups * size)
    return found.reshape(num_groups, size)
