"""Policies of a POMDP's alpha vectors."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rlm_tf.restricted.tabular import TabularModel


def utilities(alphas: npt.ArrayLike, beliefs: npt.ArrayLike) -> np.ndarray:
    """Returns `u_a(o) = sum_s b_o(s) alpha_a(s)`, float64 `[O, A]`.

    Args:
        alphas: `[S, A]`, see `FastInformedBound`.
        beliefs: `[O, S]`, the belief behind each observation.

    Raises:
        ValueError: If shapes do not fit.
    """
    alphas, beliefs = np.asarray(alphas, np.float64), np.asarray(beliefs, np.float64)
    if alphas.ndim != 2 or beliefs.ndim != 2 or beliefs.shape[1] != len(alphas):
        raise ValueError(
            "utilities: `alphas` must have axes [S A] and `beliefs` [O S], found "
            f"shapes {alphas.shape} and {beliefs.shape}."
        )
    if not alphas.size or not np.all(np.isfinite(alphas)):
        raise ValueError(
            "utilities: `alphas` must be finite numbers, one action or more."
        )
    if beliefs.min(initial=0) < 0 or not np.allclose(beliefs.sum(axis=1), 1, atol=1e-6):
        raise ValueError("utilities: every row of `beliefs` must be a distribution.")
    return beliefs @ alphas


def alpha_vector_policy(
    alphas: npt.ArrayLike,
    beliefs: npt.ArrayLike,
    temperature: float = 0.0,
    tie_tolerance: float = 1e-9,
) -> TabularModel:
    """Returns the policy that acts on an observation by its utilities.

    Args:
        alphas: `[S, A]`.
        beliefs: `[O, S]`.
        temperature: 0: all probability on the best action; of actions whose utilities
            differ from the best one's by no more than `tie_tolerance`, the first.
            Above 0: `softmax(utilities / temperature)`.
        tie_tolerance: Utilities closer than this are equal: rounding must not decide.

    Raises:
        ValueError: If shapes do not fit or a number is negative.
    """
    if not (0 <= temperature < np.inf and tie_tolerance >= 0):
        raise ValueError(
            "alpha_vector_policy: `temperature` and `tie_tolerance` must be finite and "
            f"not negative, found {temperature} and {tie_tolerance}."
        )
    values = utilities(alphas, beliefs)
    best = values.max(axis=1, keepdims=True)
    if temperature == 0:
        first = np.argmax(values >= best - tie_tolerance, axis=1)
        return TabularModel.from_probs(np.eye(values.shape[1])[first])
    scores = np.exp((values - best) / temperature)
    return TabularModel.from_probs(scores / scores.sum(axis=1, keepdims=True))
