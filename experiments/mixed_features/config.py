"""Settings of `experiments.mixed_features`, its arms and presets."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from experiments.kit.grids import Grid
from rlm_tf.command_line.flags import setting

# What a teacher is trained with: weights of the Lipschitz and of the consistency term
# as shares of the settings', label smoothing, folds, whether it stops early.
ARMS: Mapping[str, dict[str, Any]] = {
    "standard": {},
    "no-LR": {"consistency": 1.0},
    "no-CR": {"lipschitz": 1.0},
    "soteacher": {"lipschitz": 1.0, "consistency": 1.0},
    "early-stopped": {"stops": True},
    "cross-fitted": {"folds": True},
    "smoothing": {"smoothing": True},
}
STAGES = ("arms", "checkpoints", "sweep", "noise", "lemmas")


@dataclasses.dataclass(frozen=True)
class MixedConfig:
    """A list of runs: each stage, each number of examples."""

    stages: tuple[str, ...] = setting(STAGES, f"Some of {', '.join(STAGES)}.")
    examples: tuple[int, ...] = setting((200, 1000, 5000), "N, of stage arms.")
    instances: int = setting(20, "Seeds that are trained at once.")
    test: int = setting(5000, "Inputs that all are judged on.")
    noise: float = setting(0.3, "Deviation of what patches show of their features.")
    units: int = setting(32, "Of each of the teacher's two hidden layers.")
    student_units: int = setting(16, "Of the student's one.")
    epochs: int = setting(1000, "Of all examples at once, of teachers and students.")
    rate: float = setting(3e-3, "Of Adam, falling in a line.")
    lipschitz: float = setting(1e-2, "Of the sum of constants.")
    consistency: float = setting(3.0, "Of the distance to earlier epochs.")
    smoothing: float = setting(0.1, "Share that all classes have alike.")
    folds: int = setting(5, "Of cross-fitting; early stopping holds out one.")
    checkpoints: int = setting(10, "Of a teacher, that students learn from.")
    sweep_examples: int = setting(1000, "N, of stages checkpoints, sweep and noise.")
    sweep_lipschitz: tuple[float, ...] = setting(
        (1e-3, 3e-3, 1e-2, 3e-2, 1e-1), "Weights of stage sweep."
    )
    sweep_consistency: tuple[float, ...] = setting((0.3, 1.0, 3.0, 10.0), "Likewise.")
    sweep_noise: tuple[float, ...] = setting(
        (0.1, 0.3, 0.6, 1.0), "Deviations of patches, of stage noise."
    )

    def check(self) -> None:
        """Raises ValueError for settings that no run can have."""
        for stage in self.stages:
            if stage not in STAGES:
                raise ValueError(
                    f"--stages must be some of {', '.join(STAGES)}; found {stage}."
                )
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name == "stages":
                continue
            numbers = value if isinstance(value, tuple) else (value,)
            if not numbers or min(numbers) <= 0:
                raise ValueError(f"--{field.name} must be positive, found {value}.")
        if self.folds < 2:
            raise ValueError(f"--folds must be at least 2, found {self.folds}.")
        fewest = min(*self.examples, self.sweep_examples)
        if fewest < self.folds:
            raise ValueError(
                f"--examples must be at least {self.folds} (--folds), found {fewest}."
            )
        if self.epochs < self.checkpoints:
            raise ValueError("--epochs must be at least --checkpoints.")


PRESETS = {
    # Seconds: does everything run?
    "smoke": MixedConfig(
        examples=(40,),
        instances=2,
        test=50,
        units=4,
        student_units=2,
        epochs=6,
        checkpoints=2,
        sweep_examples=20,
        sweep_lipschitz=(0.1,),
        sweep_consistency=(1.0,),
        sweep_noise=(0.3,),
    ),
    "small": MixedConfig(),
}
GRID = Grid("mixed_features", PRESETS, "running:runs_of")
