"""Settings of trainings on the toroidal grid, and the arms of Figure 3."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from rlm_tf.command_line.flags import setting

# Temperature of each arm's target; None: no IMM.
ARMS: Mapping[str, float | None] = {
    "none": None,
    "max-utility": 0.0,
    "softmax T=0.5": 0.5,
    "softmax T=1.0": 1.0,
}
FIXED = "max-utility, fixed lambda"


@dataclasses.dataclass(frozen=True)
class ReinforceConfig:
    """The environment, the learner and how often it is run."""

    size: int = setting(11, "Cells on a side of the grid.")
    reward_width: float = setting(0.1, "Variance of the environment's reward.")
    pomdp_reward_width: float = setting(
        0.3, "Variance of the reward that the POMDP's solver sees."
    )
    hidden_units: int = setting(32, "Width of the policy's hidden layer.")
    discount: float = setting(0.9, "Of rewards to go, and of the POMDP.")
    learning_rate: float = setting(1e-2, "Of Adam.")
    trajectory: int = setting(50, "Steps of the one trajectory of an epoch.")
    epochs: tuple[int, ...] = setting(
        (10, 20, 50, 75, 100, 125, 150, 175, 200, 250, 300, 350, 400, 450, 500),
        "Numbers of epochs, a training of its own for each.",
    )
    search_epochs: tuple[int, ...] = setting(
        (50, 200, 400), "Numbers of epochs of the search for lambda."
    )
    runs: int = setting(30, "Seeds, from 1 on.")
    fixed_coefficient: float = setting(0.25, "lambda of the arm with a fixed one.")
    rollouts: int = setting(10, "Rollouts that judge a trained policy.")
    horizon: int = setting(22, "Steps of such a rollout.")

    def check(self) -> None:
        """Raises ValueError for settings that no study can have."""
        for name in ("hidden_units", "trajectory", "runs", "rollouts", "horizon"):
            if getattr(self, name) < 1:
                raise ValueError(
                    f"--{name} must be positive, found {getattr(self, name)}."
                )
        for name in ("epochs", "search_epochs"):
            values = getattr(self, name)
            if not values or min(values) < 1 or len(set(values)) < len(values):
                raise ValueError(
                    f"--{name} must be distinct positive integers, found "
                    f"{','.join(map(str, values))}."
                )
        if self.size < 2:
            raise ValueError(f"--size must be at least 2, found {self.size}.")
        for name in ("reward_width", "pomdp_reward_width", "learning_rate"):
            if not getattr(self, name) > 0:
                raise ValueError(
                    f"--{name} must be positive, found {getattr(self, name)}."
                )
        if not 0 <= self.discount < 1:
            raise ValueError(f"--discount must lie in [0, 1), found {self.discount}.")
        if not self.fixed_coefficient >= 0:
            raise ValueError(
                "--fixed_coefficient must not be negative, found "
                f"{self.fixed_coefficient}."
            )
