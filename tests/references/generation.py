"""Filters on probabilities, one token after the other, in Python floats."""

from __future__ import annotations

import math

import numpy as np


def temperature(probs: list[float], t: float) -> list[float]:
    """`p_i^{1/T} / sum_j p_j^{1/T}`."""
    powers = [p ** (1.0 / t) for p in probs]
    return [power / math.fsum(powers) for power in powers]


def top_k(probs: list[float], k: int) -> list[float]:
    """Keeps the k most probable tokens, the first of equals."""
    return _only(probs, _ranking(probs)[:k])


def nucleus(probs: list[float], p: float) -> list[float]:
    """Adds tokens in order of probability until their sum reaches p."""
    kept: list[int] = []
    for token in _ranking(probs):
        kept.append(token)
        if math.fsum(probs[i] for i in kept) >= p:
            break
    return _only(probs, kept)


def entropy(probs: list[float]) -> float:
    """Entropy in nats."""
    return -math.fsum(p * math.log(p) for p in probs if p > 0)


def eta(probs: list[float], epsilon: float) -> list[float]:
    """Keeps what is above `min(epsilon, sqrt(epsilon) exp(-H))`, and the best."""
    threshold = min(epsilon, math.sqrt(epsilon) * math.exp(-entropy(probs)))
    kept = [i for i, p in enumerate(probs) if p > threshold]
    return _only(probs, kept or _ranking(probs)[:1])


def typical(probs: list[float], mass: float) -> list[float]:
    """Adds tokens in order of `|-ln p - H|` until their sum reaches `mass`."""
    h, kept = entropy(probs), []
    possible = [i for i, p in enumerate(probs) if p > 0]
    for token in sorted(possible, key=lambda i: abs(-math.log(probs[i]) - h)):
        kept.append(token)
        if math.fsum(probs[i] for i in kept) >= mass:
            break
    return _only(probs, kept)


def chi_square(counts: np.ndarray, probs: np.ndarray) -> tuple[float, int]:
    """Returns the statistic and its degrees of freedom; no count where p is 0."""
    possible = probs > 0
    assert not counts[~possible].any()
    expected = counts.sum() * probs[possible]
    statistic = float(((counts[possible] - expected) ** 2 / expected).sum())
    return statistic, int(possible.sum()) - 1


def _ranking(probs: list[float]) -> list[int]:
    return sorted(range(len(probs)), key=lambda i: (-probs[i], i))


def _only(probs: list[float], kept: list[int]) -> list[float]:
    total = math.fsum(probs[i] for i in kept)
    return [p / total if i in kept else 0.0 for i, p in enumerate(probs)]
