"""Which labelled documents to learn from."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rlm_tf.checks import check_integer, check_range


def select_confident(
    confidence: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    fraction: float = 0.5,
    per_class: bool = True,
) -> np.ndarray:
    """Selects the labelled documents whose labels a model is surest of.

    As in the code of Dong (2025): `round(fraction count)` of each class, half to even
    and at least 1; of equal confidences those that come first.

    Args:
        confidence: P(label | document) or any other score, `[N]`; higher is surer.
        labels: int `[N]`, -1: none, never selected.
        fraction: In [0, 1].
        per_class: Whether of each class apart, or of all together.

    Returns:
        bool `[N]`.

    Raises:
        ValueError: If shapes differ, the fraction lies outside [0, 1], or the
            confidence of a labelled document is no number.
    """
    name = "select_confident"
    scores, own = _pair(name, "confidence", confidence, labels)
    check_range(name, 0.0, 1.0, fraction=fraction)
    if np.isnan(scores[own >= 0]).any():
        raise ValueError(f"{name}: `confidence` of a labelled document is no number.")
    selected = np.zeros(own.shape, bool)
    groups = (
        [np.flatnonzero(own == label) for label in np.unique(own[own >= 0])]
        if per_class
        else [np.flatnonzero(own >= 0)]
    )
    for rows in groups:
        number = max(round(fraction * len(rows)), 1)
        order = np.argsort(-scores[rows], kind="stable")
        selected[rows[order[:number]]] = True
    return selected


def select_by_learning_order(
    predictions: npt.ArrayLike, labels: npt.ArrayLike, *, fraction: float = 0.5
) -> np.ndarray:
    """Selects what was learnt first (LOPS; Mekala, Dong and Shang 2022).

    Of each class, the documents that are predicted as labelled in the first epoch in
    which `int(fraction count)` of them are, or more; all of a class that never gets
    there. (Of one label that is none at a fraction of half, so that it may go.)

    Args:
        predictions: Predicted classes after each epoch, int `[E, N]`.
        labels: int `[N]`, -1: none, never selected.
        fraction: In [0, 1].

    Returns:
        bool `[N]`.

    Raises:
        ValueError: If shapes do not fit or the fraction lies outside [0, 1].
    """
    name = "select_by_learning_order"
    check_range(name, 0.0, 1.0, fraction=fraction)
    own, said = np.asarray(labels), np.asarray(predictions)
    if own.ndim != 1 or said.ndim != 2 or said.shape[1] != len(own):
        raise ValueError(
            f"{name}: `predictions` must be [E, N] and `labels` [N], found "
            f"{list(said.shape)} and {list(own.shape)}."
        )
    selected = np.zeros(own.shape, bool)
    for label in np.unique(own[own >= 0]):
        members = own == label
        learnt = (said == label) & members
        enough = learnt.sum(axis=1) >= int(fraction * members.sum())
        selected |= learnt[enough.argmax()] if enough.any() else members
    return selected


def normalised_loss_scores(losses: npt.ArrayLike) -> np.ndarray:
    """Returns how clean documents look by their losses (O2U-Net; Huang et al. 2019).

    Minus the loss' excess over the mean of its epoch, averaged over epochs: high is
    clean. (The released code of Dong (2025) has the other sign, and so keeps the
    documents with the highest losses.)

    Args:
        losses: float `[E, N]`, of all documents after each epoch.

    Returns:
        float64 `[N]`.

    Raises:
        ValueError: If they are no matrix.
    """
    found = np.asarray(losses, np.float64)
    if found.ndim != 2 or not found.size:
        raise ValueError(
            "normalised_loss_scores: `losses` must be [E, N], found "
            f"{list(found.shape)}."
        )
    return -(found - found.mean(axis=1, keepdims=True)).mean(axis=0)


def random_flip(
    labels: npt.ArrayLike, true_labels: npt.ArrayLike, *, seed: int
) -> np.ndarray:
    """Returns labels as wrong as given ones, but for documents drawn at random.

    Labels are permuted within each true class, so that noise and what is taken for what
    stay exactly the same, and have nothing to do with what is in a document: the
    control of Dong (2025, Figure 3.1).

    Args:
        labels: int `[N]`, -1: none, which stays.
        true_labels: int `[N]`.
        seed: Of the permutation.

    Returns:
        int, the dtype of `labels`, `[N]`.

    Raises:
        ValueError: If shapes differ.
    """
    name = "random_flip"
    own, true = _pair(name, "labels", labels, true_labels)
    check_integer(name, "seed", seed, 0)
    rng = np.random.default_rng(seed)
    flipped = own.copy()
    for label in np.unique(true):
        rows = np.flatnonzero((true == label) & (own >= 0))
        flipped[rows] = own[rng.permutation(rows)]
    return flipped


def _pair(
    name: str, first_name: str, first: npt.ArrayLike, second: npt.ArrayLike
) -> tuple[np.ndarray, np.ndarray]:
    a, b = np.asarray(first), np.asarray(second)
    if a.ndim != 1 or a.shape != b.shape:
        raise ValueError(
            f"{name}: `{first_name}` and labels must be [N], found {list(a.shape)} and "
            f"{list(b.shape)}."
        )
    return a, b
