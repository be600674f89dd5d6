"""Monte Carlo objectives by their definitions, and the tiny model of the oracle."""

from __future__ import annotations

import itertools
import json
import pathlib

import numpy as np

ORACLE = json.loads(
    (pathlib.Path(__file__).parent / "monte_carlo_oracle.json").read_text()
)

# Three latents, four observations; the numbers of the oracle.
PRIOR = np.array([0.5, 0.3, 0.2])
LIKELIHOOD = np.array(
    [[0.5, 0.25, 0.15, 0.1], [0.1, 0.2, 0.3, 0.4], [0.05, 0.6, 0.05, 0.3]]
)
Q_LOGITS = np.array(
    [[0.4, -0.3, -0.9], [-0.2, 0.1, 0.5], [0.0, 0.8, -0.5], [-0.6, 0.9, 0.3]]
)
ALPHA, LAMBDA = 1.5, 0.3
# Objectives with different counts of samples for evidence and divergence, of three.
ASYMMETRIC = [
    {"objective": objective, "num_samples": counts, "grouping": grouping}
    for objective in ("kl", "renyi")
    for counts in ((3, 1), (1, 3), (3, 2))
    for grouping in ("difference", "terms")
]


def q_probs(x: int) -> np.ndarray:
    """q(z|x) `[3]`."""
    weights = np.exp(Q_LOGITS[x])
    return weights / weights.sum()


def tuples(num_samples: int, x: int) -> tuple[np.ndarray, np.ndarray]:
    """All tuples of latents `[K, 3^K]` and their probabilities under q `[3^K]`."""
    latents = np.array(list(itertools.product(range(3), repeat=num_samples))).T
    return latents, np.prod(q_probs(x)[latents], axis=0)


def log_probs(latents: np.ndarray, x: int) -> tuple[np.ndarray, ...]:
    """ln p(x|z), ln p(z) and ln q(z|x) of latents, in their shape."""
    found = (LIKELIHOOD[:, x], PRIOR, q_probs(x))
    return tuple(np.log(table)[latents] for table in found)


def evidence(lik: np.ndarray, r: np.ndarray, s: np.ndarray) -> np.ndarray:
    """S by the definition: the logarithm of a mean of ratios of probabilities."""
    return np.log(np.mean(np.exp(lik) * np.exp(r) / np.exp(s), axis=0))


def alpha_evidence(
    lik: np.ndarray, r: np.ndarray, s: np.ndarray, alpha: float
) -> np.ndarray:
    return np.log(np.mean(np.exp(lik) ** alpha * np.exp(r) / np.exp(s), axis=0))


def u_hat(lik: np.ndarray, r: np.ndarray, s: np.ndarray) -> np.ndarray:
    """U by Eq. (5.9)."""
    ratios = np.exp(lik) * np.exp(r) / np.exp(s)
    return np.mean(ratios * lik, axis=0) / np.mean(ratios, axis=0)


def objective(
    name: str,
    lik: np.ndarray,
    r: np.ndarray,
    s: np.ndarray,
    alpha: float,
    lambda_: float,
    counts: tuple[int, int] | None = None,
    grouping: str = "difference",
) -> np.ndarray:
    """An objective by Eqs. (5.11), (5.12), (5.15), (5.16) and (5.18)."""
    n, m = counts or (len(lik), len(lik))
    first, second = (lik[:n], r[:n], s[:n]), (lik[:m], r[:m], s[:m])
    if name == "iwae":
        return evidence(*first)
    if name == "alpha_iwae":
        return alpha_evidence(*first, alpha)
    if name == "u_hat":
        return u_hat(*first)
    if name == "power":
        return alpha_evidence(*first, alpha) / alpha
    if name == "kl" and grouping == "terms":
        return (1 - lambda_) * evidence(*first) + lambda_ * u_hat(*second)
    if name == "kl":
        return evidence(*first) + lambda_ * (u_hat(*second) - evidence(*second))
    factor = lambda_ / (alpha - 1)
    tilted = alpha_evidence(*second, alpha)
    if grouping == "terms":
        return factor * tilted - (alpha * factor - 1) * evidence(*first)
    return evidence(*first) + factor * (tilted - alpha * evidence(*second))
