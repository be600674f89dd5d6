"""How noisy labels are, without true ones."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

_ROUNDING = 1e-9


class ConfidentJoint(NamedTuple):
    """What labels seem to be, and what they seem to stand for.

    Attributes:
        joint: int64 `[K, K]`, documents by their label and what they seem to be.
        calibrated: float64 `[K, K]`, shares of all, rows as many as there are labels.
        noise_rate: Share of the labels that seem wrong.
    """

    joint: np.ndarray
    calibrated: np.ndarray
    noise_rate: float


def confident_joint(labels: npt.ArrayLike, probs: npt.ArrayLike) -> ConfidentJoint:
    """Estimates how many labels are wrong (Northcutt, Jiang and Chuang 2021).

    A document counts at (its label, j) if j is the likeliest of the classes whose
    probability is at least the mean probability of j over the documents labelled j.
    Rows are then scaled to what they have of labels; a row without any count is taken
    to be right.

    Args:
        labels: int `[N]`; -1: none, which says nothing.
        probs: `[N, K]`, of a model that has not learnt from the document
            (cross-fitted); of one that has, too few seem wrong.

    Raises:
        ValueError: If shapes do not fit, there is no label, or one is no class.
    """
    name = "confident_joint"
    own, said = np.asarray(labels), np.asarray(probs, np.float64)
    if said.ndim != 2 or own.shape != said.shape[:1]:
        raise ValueError(
            f"{name}: `labels` must be [N] and `probs` [N, K], found "
            f"{list(own.shape)} and {list(said.shape)}."
        )
    known = own >= 0
    own, said = own[known], said[known]
    number, classes = said.shape
    if not number or own.max() >= classes:
        raise ValueError(
            f"{name}: `labels` must have some of the classes 0 to {classes - 1}, found "
            f"{np.unique(own).tolist()}."
        )
    counts = np.bincount(own, minlength=classes)
    sums = np.bincount(own, weights=said[np.arange(number), own], minlength=classes)
    # Of a class that nothing is labelled as there is no threshold to reach.
    thresholds = np.where(counts > 0, sums / np.maximum(counts, 1), np.inf)
    # The mean of equal numbers may be rounded to above them.
    thresholds -= _ROUNDING
    reached = np.where(said >= thresholds, said, -np.inf)
    best = reached.argmax(axis=1)
    sure = np.isfinite(reached.max(axis=1))
    joint = np.zeros([classes, classes], np.int64)
    np.add.at(joint, (own[sure], best[sure]), 1)
    rows = joint.sum(axis=1, keepdims=True)
    shares = np.where(rows > 0, joint / np.maximum(rows, 1), np.eye(classes))
    calibrated = shares * counts[:, np.newaxis] / number
    return ConfidentJoint(joint, calibrated, float(1 - np.trace(calibrated)))
