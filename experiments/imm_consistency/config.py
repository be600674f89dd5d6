"""Settings of `experiments.imm_consistency`, and its presets."""

from __future__ import annotations

import dataclasses

from rlm_tf.command_line.flags import setting


@dataclasses.dataclass(frozen=True)
class ConsistencyConfig:
    """How far to descend, and where to look."""

    steps: int = setting(8000, "Of gradient descent on free logits.")
    learning_rate: float = setting(4.0, "Of gradient descent.")
    coefficients: tuple[float, ...] = setting(
        (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0), "lambda of the curves."
    )
    samples: tuple[int, ...] = setting(
        (1, 2, 3, 5, 10, 20, 50, 100), "k of the k-sample estimator."
    )
    draws: int = setting(200_000, "Monte Carlo draws of the estimator at every k.")
    seed: int = setting(8, "Of the random source and of the draws.")

    def check(self) -> None:
        """Raises ValueError for settings that no study can have."""
        if self.steps < 1 or self.draws < 2 or not self.learning_rate > 0:
            raise ValueError(
                "--steps, --draws and --learning_rate must be positive, and --draws at "
                "least 2."
            )
        if not self.coefficients or min(self.coefficients) < 0:
            raise ValueError("--coefficients must not be empty or negative.")
        if not self.samples or min(self.samples) < 1:
            raise ValueError("--samples must be positive integers.")


PRESETS = {
    "smoke": ConsistencyConfig(
        steps=50, coefficients=(0.2, 1.0), samples=(1, 5), draws=500
    ),
    "small": ConsistencyConfig(steps=2000, draws=20_000),
    "paper": ConsistencyConfig(),
}
