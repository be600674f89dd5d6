"""Documents in folds, so that each can be judged by a model that has not seen it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rlm_tf.checks import check_integer


def document_folds(
    tokens: npt.ArrayLike, labels: npt.ArrayLike, folds: int, *, seed: int
) -> np.ndarray:
    """Returns the fold of each document, int `[N]`, -1 of those without a label.

    Documents with the same tokens are in one fold, and each class is spread over all
    folds as evenly as that allows.

    Args:
        tokens: int `[N, T]`.
        labels: int `[N]`; -1: none.
        folds: How many.
        seed: Of the draw.

    Raises:
        ValueError: If there are fewer than two folds, or fewer different documents with
            labels than folds.
    """
    name = "document_folds"
    check_integer(name, "folds", folds, 2)
    rows, own = np.ascontiguousarray(tokens), np.asarray(labels)
    known = np.flatnonzero(own >= 0)
    groups: dict[bytes, int] = {}
    group_of = np.array(
        [groups.setdefault(rows[row].tobytes(), len(groups)) for row in known], int
    )
    if len(groups) < folds:
        raise ValueError(
            f"{name}: {folds} folds need so many different documents with labels, "
            f"found {len(groups)}."
        )
    _, first = np.unique(group_of, return_index=True)
    classes = own[known[first]]
    drawn = np.random.default_rng(seed).permutation(len(groups))
    order = drawn[np.argsort(classes[drawn], kind="stable")]
    of_group = np.empty(len(groups), int)
    of_group[order] = np.arange(len(groups)) % folds
    found = np.full(len(own), -1)
    found[known] = of_group[group_of]
    return found
