"""Numbers computed two ways, and plain float64 versions written with loops."""

from __future__ import annotations

import json
import math
import pathlib
from collections.abc import Sequence

import numpy as np

ORACLE = json.loads(
    pathlib.Path(__file__).with_name("bmi_oracle.json").read_text("utf-8")
)


def table_pairs() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Returns scores of the oracle's listed pairs, and the cells that they lie in.

    Returns:
        Joint scores `[60]`, marginal scores `[3600]`, and the cell of each.
    """
    counts, scores = (np.array(ORACLE["table"][key]) for key in ("counts", "T"))
    cells = [(x, y) for x in range(3) for y in range(4) for _ in range(counts[x, y])]
    crossed = [(x, y) for x, _ in cells for _, y in cells]
    joint, marginal = (np.array(pairs).T for pairs in (cells, crossed))
    return scores[tuple(joint)], scores[tuple(marginal)], joint, marginal


def softplus(x: float) -> float:
    """Returns ln(1 + e^x)."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def exact_raml(log_model: np.ndarray, rewards: np.ndarray, temperature: float) -> float:
    """Returns Eq. (13): minus ln Q under the pay-off distribution e^(r / beta) / Z."""
    payoff = [math.exp(reward / temperature) for reward in rewards]
    return -sum(p * q for p, q in zip(payoff, log_model, strict=True)) / sum(payoff)


def geometric_probs(rate: float, most: int, tail: str) -> list[float]:
    """Returns G(0) to G(most), by adding up what the tail does."""
    probs = [rate * (1 - rate) ** g for g in range(most + 1)]
    if tail == "renormalised":
        return [p / sum(probs) for p in probs]
    if tail == "clipped":
        beyond = 1 - sum(probs)
        return [*probs[:-1], probs[-1] + beyond]
    return probs


def effective_sample_size(weights: Sequence[float]) -> float:
    """Returns (sum w)^2 / sum w^2."""
    return sum(weights) ** 2 / sum(weight * weight for weight in weights)
