"""Whether probabilities are right, and the temperature that sets them right."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.optimize
import scipy.special

from rlm_tf.evaluation.reliability import Bins, Edges, checked_weights, reliability

# 1 / T beyond which no two logits are near each other.
_MOST = 1e150
# Rows at once, so that no array of intermediate values is as large as the logits.
_ROWS = 65_536


class FittedTemperature(NamedTuple):
    """The temperature that suits held-out labels best.

    Attributes:
        temperature: T. 0 where every label has the largest logit: the surer, the
            better; infinite where logits say nothing, or the opposite.
        nll_before: Mean negative log-likelihood, nats, at T = 1.
        nll_after: The same at T, or at the limit.
    """

    temperature: float
    nll_before: float
    nll_after: float


class Fidelity(NamedTuple):
    """How far a student says what its teacher does.

    Attributes:
        agreement: Share of the examples of which both hold the same class for the most
            probable (the thesis reports percent).
        divergence: Mean KL(teacher || student), nats.
    """

    agreement: float
    divergence: float


def expected_calibration_error(
    probs: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    bins: int = 15,
    edges: Edges = "right",
    equal: Bins = "width",
    weights: npt.ArrayLike | None = None,
) -> float:
    """Returns the expected calibration error (Guo et al. 2017, arXiv 1706.04599).

        ECE = sum_b (n_b / N) |accuracy of b - mean confidence of b|

    over bins of the probability of the most probable class. By chance alone it is
    above 0, and it may rise when a temperature lowers the likelihood's loss.

    Args:
        probs: `[N, K]`.
        labels: Int `[N]`.
        bins: Number of bins; 15 is that of the authors' code.
        edges: See `reliability`.
        equal: See `reliability`.
        weights: See `reliability`.

    Raises:
        ValueError: If shapes or options do not fit.
    """
    # In their own precision: edges of bins are rounded as they are.
    given = np.asarray(probs)
    exact, labels = _checked("expected_calibration_error", probs, labels)
    right = exact.argmax(axis=1) == labels
    confidences = np.clip(given.max(axis=1), 0, 1)
    own = None if weights is None else np.asarray(weights)
    found = reliability(confidences, right, bins, edges=edges, equal=equal, weights=own)
    return found.expected_error


def brier_score(probs: npt.ArrayLike, labels: npt.ArrayLike) -> float:
    """Returns the mean squared distance of probabilities to labels (Brier 1950).

        mean_i sum_k (p_ik - [y_i = k])^2, in [0, 2]

    Args:
        probs: `[N, K]`.
        labels: y, int `[N]`.

    Raises:
        ValueError: If shapes do not fit.
    """
    probs, labels = _checked("brier_score", probs, labels)
    own = probs[np.arange(len(labels)), labels]
    return float(np.mean(np.sum(probs**2, axis=1) - 2 * own + 1))


def fidelity(teacher_probs: npt.ArrayLike, student_probs: npt.ArrayLike) -> Fidelity:
    """Returns how far a student says what its teacher does.

    Args:
        teacher_probs: `[N, K]`.
        student_probs: `[N, K]`.

    Raises:
        ValueError: If shapes do not fit.
    """
    teacher, student = (
        np.asarray(probs, np.float64) for probs in (teacher_probs, student_probs)
    )
    if teacher.shape != student.shape or teacher.ndim != 2 or not len(teacher):
        raise ValueError(
            "fidelity: `teacher_probs` and `student_probs` must both have axes [N K], "
            f"N >= 1, found {teacher.shape} and {student.shape}."
        )
    same = teacher.argmax(axis=1) == student.argmax(axis=1)
    divergence = scipy.special.rel_entr(teacher, student).sum(axis=1)
    return Fidelity(float(same.mean()), float(divergence.mean()))


def fit_temperature(
    logits: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    weights: npt.ArrayLike | None = None,
) -> FittedTemperature:
    """Returns the temperature T whose softmax(z / T) loses least on labels.

    The loss is convex in 1 / T; its slope, the mean of E_p[z] - z_y, is followed to
    where it is 0.

    Args:
        logits: z, `[N, K]`, finite, of held-out examples.
        labels: y, int `[N]`.
        weights: What each example counts in the mean, `[N]`; None: all count alike.

    Raises:
        ValueError: If shapes do not fit, or a logit is not finite.
    """
    name = "fit_temperature"
    given = np.asarray(logits)
    given, labels = _checked(name, given, labels, "logits")
    if not np.isfinite(given).all():
        raise ValueError(f"{name}: `logits` must be finite.")
    shares = checked_weights(name, weights, len(labels))
    # Those that count nothing are none of the labels below.
    given, labels, shares = (each[shares > 0] for each in (given, labels, shares))
    shares = shares / shares.sum()
    own = given[np.arange(len(labels)), labels]

    def slope(beta: float) -> float:
        total = 0.0
        for start in range(0, len(given), _ROWS):
            rows = given[start : start + _ROWS]
            probs = scipy.special.softmax(beta * rows, axis=1)
            # Less the own logit, before sums of large numbers hide it.
            apart = probs * (rows - own[start : start + _ROWS, np.newaxis])
            total += np.sum(shares[start : start + _ROWS, np.newaxis] * apart)
        return float(total)

    def nll(beta: float) -> float:
        total = 0.0
        for start in range(0, len(given), _ROWS):
            rows = beta * (given[start : start + _ROWS])
            log_sums = scipy.special.logsumexp(rows, axis=1)
            losses = log_sums - beta * own[start : start + _ROWS]
            total += np.sum(shares[start : start + _ROWS] * losses)
        return float(total)

    before = nll(1.0)
    if slope(0.0) >= 0:
        return FittedTemperature(math.inf, before, math.log(given.shape[1]))
    best = given.max(axis=1)
    if (own == best).all():
        ties = np.count_nonzero(given == best[:, np.newaxis], axis=1)
        return FittedTemperature(0.0, before, float(np.sum(shares * np.log(ties))))
    high = 1.0
    # Somebody's logit is not the largest, so that the slope turns, if late.
    while slope(high) < 0 and high < _MOST:
        high *= 2
    beta = float(scipy.optimize.brentq(slope, 0.0, high, xtol=1e-15, rtol=1e-14))
    return FittedTemperature(1 / beta, before, nll(beta))


def _checked(
    name: str,
    values: npt.ArrayLike,
    labels: npt.ArrayLike,
    argument: str = "probs",
) -> tuple[np.ndarray, np.ndarray]:
    """Returns values `[N, K]` in float64, and labels `[N]`."""
    found, labels = np.asarray(values, np.float64), np.asarray(labels)
    if found.ndim != 2 or not len(found) or labels.shape != found.shape[:1]:
        raise ValueError(
            f"{name}: `{argument}` must have axes [N K], N >= 1, and `labels` [N]; "
            f"found {found.shape} and {labels.shape}."
        )
    if not np.issubdtype(labels.dtype, np.integer):
        raise ValueError(
            f"{name}: `labels` must be integers, found dtype {labels.dtype}."
        )
    if labels.min() < 0 or labels.max() >= found.shape[1]:
        raise ValueError(
            f"{name}: `labels` must lie in [0, {found.shape[1]}), found "
            f"{labels.min()}..{labels.max()}."
        )
    return found, labels
