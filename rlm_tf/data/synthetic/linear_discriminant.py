"""Points of a cube and the side of a plane on which they lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rlm_tf.checks import check_integer
from rlm_tf.restricted import BayesDiscriminant


class LinearDiscriminant(NamedTuple):
    """The task of section 1.1: `y = 1{coefficients . x + offset > 0}`, x uniform.

    Attributes:
        coefficients: One for each feature.
        offset: d.
        low: Lower bound of every feature.
        high: Upper bound.
    """

    coefficients: Sequence[float] = (1.0, 1.0, 1.0)
    offset: float = 0.0
    low: float = -1.0
    high: float = 1.0

    def sample(
        self, num_points: int, rng: np.random.Generator, num_runs: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draws points.

        Args:
            num_points: n.
            rng: Where the draws come from.
            num_runs: R, independent data sets; None: one without an axis of its own.

        Returns:
            Features float32 `[n, D]` and labels int32 `[n]`, or `[R, n, D]` and
            `[R, n]`.

        Raises:
            ValueError: If there is no feature or the bounds are not in order.
        """
        check_integer("LinearDiscriminant.sample", "num_points", num_points, 1)
        self.check()
        shape: tuple[int, ...] = (num_points, len(self.coefficients))
        if num_runs is not None:
            shape = (num_runs, *shape)
        x = rng.uniform(self.low, self.high, shape)
        # In the precision that models see: a label must not contradict its point.
        x = x.astype(np.float32)
        return x, self.labels(x)

    def labels(self, x: np.ndarray) -> np.ndarray:
        """Returns the label of each point `[..., D]`: int32 `[...]`."""
        values = np.asarray(x, np.float64) @ np.asarray(self.coefficients, np.float64)
        return (values + self.offset > 0).astype(np.int32)

    def restricted(self, short_features: Sequence[int] = (0,)) -> BayesDiscriminant:
        """Returns the exact predictor that sees these features alone."""
        return BayesDiscriminant(*self, short_features=short_features)

    def check(self) -> None:
        """Raises ValueError unless this is a task: features and ordered bounds."""
        numbers = [*self.coefficients, self.offset, self.low, self.high]
        if not len(self.coefficients) or not np.all(np.isfinite(numbers)):
            raise ValueError(
                "LinearDiscriminant: `coefficients` must not be empty, and all numbers "
                f"finite; found {self}."
            )
        if not self.low < self.high:
            raise ValueError(
                f"LinearDiscriminant: `low` must be below `high`, found {self.low} and "
                f"{self.high}."
            )
