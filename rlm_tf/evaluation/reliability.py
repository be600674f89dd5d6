"""Whether a model is right as often as it says."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rlm_tf.checks import check_integer


class Reliability(NamedTuple):
    """Confidence and accuracy by bins of confidence.

    Attributes:
        confidence: Mean confidence of each bin that is not empty, float64 `[K]`.
        accuracy: Share of its predictions that were right, `[K]`.
        counts: Its predictions, int `[K]`.
        expected_error: The expected calibration error: the mean over all predictions of
            the distance between their bin's confidence and accuracy.
    """

    confidence: np.ndarray
    accuracy: np.ndarray
    counts: np.ndarray
    expected_error: float


def reliability(
    confidences: np.ndarray, correct: np.ndarray, bins: int = 10
) -> Reliability:
    """Returns how often predictions are right, by how sure the model is.

    Bins are of equal width in [0, 1], as in Guo et al. (2017, arXiv 1706.04599).

    Args:
        confidences: Probability of each most probable token, `[N]`, N >= 1.
        correct: Whether it was the right one, `[N]`.
        bins: Number of bins.

    Raises:
        ValueError: If shapes differ, there are none, or a confidence is out of range.
    """
    check_integer("reliability", "bins", bins, 1)
    confidences = np.asarray(confidences, np.float64)
    correct = np.asarray(correct, np.float64)
    if confidences.ndim != 1 or confidences.shape != correct.shape:
        raise ValueError(
            "reliability: `confidences` and `correct` must both have axes [N], found "
            f"{confidences.shape} and {correct.shape}."
        )
    if not confidences.size or not np.all((confidences >= 0) & (confidences <= 1)):
        raise ValueError(
            "reliability: `confidences` must be N >= 1 probabilities in [0, 1]."
        )
    places = np.minimum((confidences * bins).astype(int), bins - 1)
    counts = np.bincount(places, minlength=bins)
    kept = counts > 0
    sure = np.bincount(places, confidences, bins)[kept] / counts[kept]
    right = np.bincount(places, correct, bins)[kept] / counts[kept]
    error = float(np.sum(counts[kept] * np.abs(sure - right)) / counts.sum())
    return Reliability(sure, right, counts[kept], error)
