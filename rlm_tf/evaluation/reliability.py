"""Whether a model is right as often as it says."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

from rlm_tf.checks import check_integer, check_option

# To which bin a confidence on an edge belongs; bins of equal width or of equally many.
Edges = Literal["left", "right"]
Bins = Literal["width", "mass"]


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
    confidences: np.ndarray,
    correct: np.ndarray,
    bins: int = 10,
    *,
    edges: Edges = "left",
    equal: Bins = "width",
    weights: np.ndarray | None = None,
) -> Reliability:
    """Returns how often predictions are right, by how sure the model is.

    Bins are of equal width in [0, 1], as in Guo et al. (2017, arXiv 1706.04599), or of
    equally many predictions.

    Args:
        confidences: Probability of each most probable token, `[N]`, N >= 1.
        correct: Whether it was the right one, `[N]`.
        bins: Number of bins.
        edges: Which edge of a bin of equal width is its own: "left" or "right", as in
            the code of Guo et al. Edges are rounded as confidences are: 0.6 in single
            precision is an edge of five bins.
        equal: "width", or "mass": the sorted confidences are cut into parts of one
            size, give or take one.
        weights: What each prediction counts in means, `[N]`, such as how many it stands
            for in a sample; None: all count alike.

    Raises:
        ValueError: If shapes differ, there are none, or a confidence or an option is
            out of range.
    """
    check_integer("reliability", "bins", bins, 1)
    check_option("reliability", "edges", edges, ("left", "right"))
    check_option("reliability", "equal", equal, ("width", "mass"))
    given = np.asarray(confidences)
    confidences = given.astype(np.float64)
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
    places = _places(given, bins, edges, equal)
    counts = np.bincount(places, minlength=bins)
    own = checked_weights("reliability", weights, len(confidences))
    sizes = np.bincount(places, own, bins)
    kept = sizes > 0
    sure = np.bincount(places, own * confidences, bins)[kept] / sizes[kept]
    right = np.bincount(places, own * correct, bins)[kept] / sizes[kept]
    error = float(np.sum(sizes[kept] * np.abs(sure - right)) / sizes.sum())
    return Reliability(sure, right, counts[kept], error)


def checked_weights(name: str, weights: Any, number: int) -> np.ndarray:
    """Returns weights, float64 `[N]`; ones if there are none.

    Raises:
        ValueError: If they are not N numbers from 0 on, one above it at least.
    """
    if weights is None:
        return np.ones(number)
    found = np.asarray(weights, np.float64)
    if found.shape != (number,) or not (
        np.isfinite(found).all() and found.min() >= 0 and found.max() > 0
    ):
        raise ValueError(
            f"{name}: `weights` must be {number} finite numbers from 0 on, not all 0; "
            f"found shape {found.shape}."
        )
    return found


def _places(
    confidences: np.ndarray, bins: int, edges: Edges, equal: Bins
) -> np.ndarray:
    """Returns the bin of each confidence."""
    if equal == "mass":
        # Equal ones are in one bin, that of the middle of their ranks: the order of
        # examples says nothing.
        _, which, counts = np.unique(
            confidences, return_inverse=True, return_counts=True
        )
        middles = np.cumsum(counts) - (counts + 1) / 2
        places = (middles * bins / len(confidences)).astype(int)
        return places[which]
    if confidences.dtype.kind != "f":
        confidences = confidences.astype(np.float64)
    if edges == "left":
        return np.minimum((confidences * bins).astype(int), bins - 1)
    inner = np.linspace(0, 1, bins + 1)[1:-1].astype(confidences.dtype)
    return np.searchsorted(inner, confidences, side="left")
