"""Settings of `experiments.bmi_variance`, and its presets."""

from __future__ import annotations

import dataclasses

from experiments.kit.grids import Grid
from rlm_tf.command_line.flags import setting


@dataclasses.dataclass(frozen=True)
class VarianceConfig:
    """Which models, and how often their gradients are drawn."""

    arm: str = setting(
        "full",
        "Arm of experiments.bmi_lm, with BMI; untrained: a small model with its first "
        "weights, to try the binary.",
    )
    models_dir: str = setting(
        "runs/bmi_lm", "Output folder of `experiments.bmi_lm --preset=small`."
    )
    weight: float = setting(0.01, "Of the BMI of the models.")
    corpus: str = setting("ptb", "The corpus.")
    fraction: float = setting(0.125, "Share of the training text.")
    pairs: int = setting(12, "Pairs of a batch.")
    most_tokens: int = setting(40, "Tokens of a sentence at most.")
    batches: int = setting(200, "Gradients of each estimator.")

    def check(self) -> None:
        """Raises ValueError for settings that no study can have."""
        for name, least in (("pairs", 1), ("most_tokens", 2), ("batches", 2)):
            if getattr(self, name) < least:
                raise ValueError(
                    f"--{name} must be at least {least}, found {getattr(self, name)}."
                )
        if self.arm not in ("base", "full", "untrained"):
            raise ValueError(
                "--arm must be an arm with BMI, base or full, or untrained; found "
                f"{self.arm}."
            )
        if not 0 < self.fraction <= 1:
            raise ValueError(f"--fraction must lie in (0, 1], found {self.fraction}.")


PRESETS = {
    "smoke": VarianceConfig(
        arm="untrained",
        corpus="python-docs",
        fraction=0.02,
        pairs=4,
        most_tokens=6,
        batches=3,
    ),
    "small": VarianceConfig(),
}
GRID = Grid(
    "bmi_variance", PRESETS, "variance:runs_of", seeds=(1, 2, 3), reads_data=True
)
