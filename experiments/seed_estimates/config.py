"""Settings of `experiments.seed_estimates`, and its presets."""

from __future__ import annotations

import dataclasses

from experiments.kit.grids import Grid
from experiments.kit.seed_config import SeedStudyConfig
from experiments.kit.seed_list import PLANTED
from rlm_tf.command_line.flags import setting

# Estimates without true labels; intervals of 50; seeds against labels.
STAGES = ("without", "intervals", "worth")


@dataclasses.dataclass(frozen=True)
class EstimatesConfig(SeedStudyConfig):
    """A grid of runs: every stage, set and seed."""

    stages: tuple[str, ...] = setting(STAGES, f"Some of {', '.join(STAGES)}.")
    worth_sets: tuple[str, ...] = setting(("ag-news",), "Sets of stage worth.")
    ratio: float = setting(0.0, "Of deletion; 0: the best by Eq. 3.3.")
    least_steps: int = setting(400, "Of a training on few labels, at most 100 passes.")
    self_epochs: int = setting(4, "Passes of self-training over all documents.")
    folds: int = setting(3, "Probes of cross-fitting.")
    given: int = setting(50, "True labels of an interval.")
    accuracies: tuple[float, ...] = setting(
        (0.5, 0.7, 0.8, 0.9, 0.95), "Of classifiers whose intervals are measured."
    )
    draws: int = setting(1000, "Samples of each.")
    numbers: tuple[int, ...] = setting(
        (10, 20, 50, 100, 200, 500), "True labels of stage worth."
    )
    weights: tuple[float, ...] = setting(
        (1.0, 10.0), "Of a true label beside one of seeds."
    )

    def check(self) -> None:
        """Raises ValueError for settings that no run can have."""
        super().check()
        if not self.stages or not set(self.stages) <= set(STAGES):
            raise ValueError(
                f"--stages must be some of {', '.join(STAGES)}; found "
                f"{', '.join(self.stages) or 'none'}."
            )
        if self.folds < 2:
            raise ValueError(f"--folds must be at least 2, found {self.folds}.")
        for name in ("given", "draws", "least_steps", "self_epochs"):
            if getattr(self, name) < 1:
                raise ValueError(
                    f"--{name} must be positive, found {getattr(self, name)}."
                )
        for name in ("accuracies", "numbers", "weights"):
            if any(not value > 0 for value in getattr(self, name)):
                raise ValueError(f"--{name} must be positive numbers.")


PRESETS = {
    # Seconds: does everything run?
    "smoke": EstimatesConfig(
        sets=(PLANTED,),
        worth_sets=(PLANTED,),
        encoder="linear",
        length=16,
        epochs=2,
        rate=0.05,
        iterations=1,
        given=20,
        accuracies=(0.8,),
        draws=20,
        numbers=(20,),
        least_steps=4,
    ),
    "small": EstimatesConfig(encoder="linear", rate=0.02),
}
GRID = Grid("seed_estimates", PRESETS, "running:runs_of", reads_data=True)
