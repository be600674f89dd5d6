"""How loss falls with the amount of text, and what a method is worth in text."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.optimize


class ScalingLaw(NamedTuple):
    """A fitted `L(D) = E + B / D ** b`.

    Attributes:
        irreducible: E, nats a token. For models of one size it contains the size's own
            share `A / N ** a`.
        amplitude: B.
        exponent: b.
        residual: Root mean square of the fit's errors, nats.
    """

    irreducible: float
    amplitude: float
    exponent: float
    residual: float

    def loss(self, tokens: np.ndarray | float) -> np.ndarray:
        """Returns the predicted loss, nats a token."""
        return self.irreducible + self.amplitude / np.power(tokens, self.exponent)

    def equivalent_tokens(self, nats: float) -> float:
        """Returns the amount of text with which the fitted method reaches a loss.

        Infinite for a loss at or below `irreducible`.
        """
        excess = nats - self.irreducible
        if excess <= 0:
            return float("inf")
        return float((self.amplitude / excess) ** (1.0 / self.exponent))


def fit_scaling_law(tokens: np.ndarray, nats: np.ndarray) -> ScalingLaw:
    """Fits `L(N, D) = E + A / N ** a + B / D ** b` (Dong, Eq. 1) at one model size N.

    At one size the second summand is a constant that cannot be told from E. Least
    squares; E >= 0, B > 0, b > 0. For every b the best E and B solve a linear problem,
    so one variable is searched.

    Args:
        tokens: Amounts of training text D, at least three different ones, positive.
        nats: Losses, nats a token.

    Raises:
        ValueError: If there are fewer than three amounts, shapes differ, values are not
            finite and positive, or the loss does not fall with the amount.
    """
    tokens, nats = np.asarray(tokens, np.float64), np.asarray(nats, np.float64)
    if tokens.shape != nats.shape or tokens.ndim != 1 or len(np.unique(tokens)) < 3:
        raise ValueError(
            "fit_scaling_law: `tokens` and `nats` must be vectors of one length with "
            f"at least three different amounts, found shapes {tokens.shape} and "
            f"{nats.shape}."
        )
    if not (np.all(np.isfinite(nats)) and np.all(tokens > 0) and np.all(nats > 0)):
        raise ValueError(
            "fit_scaling_law: amounts and losses must be positive numbers."
        )
    # In units of the geometric mean all powers are near 1.
    unit = np.exp(np.log(tokens).mean())
    relative = tokens / unit

    def solve(exponent: float) -> tuple[np.ndarray, float]:
        design = np.stack([np.ones_like(relative), relative**-exponent], axis=1)
        return scipy.optimize.nnls(design, nats)

    grid = np.geomspace(1e-2, 4.0, 200)
    best = grid[np.argmin([solve(exponent)[1] for exponent in grid])]
    search = scipy.optimize.minimize_scalar(
        lambda log_exponent: solve(np.exp(log_exponent))[1],
        bounds=(np.log(best) - 0.1, np.log(best) + 0.1),
        method="bounded",
        options={"xatol": 1e-10},
    )
    exponent = float(np.exp(search.x))
    (irreducible, amplitude), norm = solve(exponent)
    if amplitude <= 0:
        raise ValueError("fit_scaling_law: the loss does not fall with the amount.")
    return ScalingLaw(
        float(irreducible),
        float(amplitude * unit**exponent),
        exponent,
        float(norm / np.sqrt(len(tokens))),
    )
