"""Settings of `experiments.bmi_generation`, and its presets."""

from __future__ import annotations

import dataclasses

from experiments.kit.grids import Grid
from rlm_tf.command_line.flags import setting

# Texts that no model says.
TEXTS = ("real", "unigram")


@dataclasses.dataclass(frozen=True)
class GenerationConfig:
    """Which models say how much."""

    arms: tuple[str, ...] = setting(
        ("none", "base", "full", *TEXTS),
        "Arms of experiments.bmi_lm; real: the training text; unigram: its words "
        "without order.",
    )
    models_dir: str = setting(
        "runs/bmi_lm", "Output folder of `experiments.bmi_lm --preset=small`."
    )
    weight: float = setting(0.01, "Of the BMI of the models.")
    corpus: str = setting("ptb", "The corpus.")
    tokens: int = setting(929_589, "That a model says.")
    segment: int = setting(40, "Tokens of a segment.")
    gaps: tuple[int, ...] = setting((0, 10), "Tokens between two segments.")
    folds: int = setting(10, "Of the estimate.")
    reverse_tokens: int = setting(200_000, "First tokens that the reverse model reads.")
    reverse_units: int = setting(200, "Width of the reverse model.")
    reverse_epochs: int = setting(40, "Its passes over the text at most.")
    sandwich_segment: int = setting(20, "Tokens of a segment of the bounds.")
    sandwich_pairs: int = setting(200, "Pairs of the bounds.")

    def check(self) -> None:
        """Raises ValueError for settings that no run can have."""
        if not self.arms:
            raise ValueError("--arms must name at least one.")
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, int) and value < 1:
                raise ValueError(f"--{field.name} must be positive, found {value}.")
        if not self.gaps or min(self.gaps) < 0:
            raise ValueError("--gaps must name numbers of tokens, from 0 on.")
        if self.folds < 3 or self.sandwich_pairs < 2:
            raise ValueError("--folds must be at least 3, and --sandwich_pairs 2.")


PRESETS = {
    # Real text alone: no model is needed.
    "smoke": GenerationConfig(
        arms=("real",),
        corpus="python-docs",
        tokens=2000,
        segment=4,
        gaps=(0,),
        folds=3,
        reverse_tokens=1000,
        reverse_units=8,
        reverse_epochs=1,
    ),
    "small": GenerationConfig(),
}
GRID = Grid(
    "bmi_generation", PRESETS, "measuring:runs_of", seeds=(1, 2, 3), reads_data=True
)
