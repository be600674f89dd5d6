"""Settings of `experiments.distill_language`, its arms and presets."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from experiments.kit.grids import Grid
from rlm_tf.command_line.flags import setting

# Who teaches: how many plain models, the n-gram, models that have not seen what they
# say (`folds`), whose weights follow that text (`dynamic`), one that was trained for
# it; whether it is such a teacher itself; of how many dropout masks the teacher's mean
# is; whether a bigram's induced model is matched; how many times the passes of all
# others it takes; the width, as a share.
ARMS: Mapping[str, dict[str, Any]] = {
    "none": {},
    "imm": {"imm": True},
    "soteacher": {"soteacher": True},
    "of-n-gram": {"of": "n-gram"},
    "of-1": {"of": 1},
    "of-soteacher": {"of": "soteacher"},
    "of-5": {"of": 5},
    "of-5-folds": {"of": "folds"},
    "of-5-dynamic": {"of": "folds", "dynamic": True},
    "of-5-imm": {"of": 5, "imm": True},
    "of-1-dropout": {"of": 1, "dropout": 20},
    "on-policy": {"of": 1, "on_policy": 0.5},
    "longer": {"passes": 3},
    "half": {"width": 0.5},
    "half-of-5": {"width": 0.5, "of": 5},
}
N_GRAM = "kneser-ney-5"
ENSEMBLE = "ensemble-of-5"
FOLDS = 5
_RATES = ("input_dropout", "layer_dropout", "state_dropout", "output_dropout")


@dataclasses.dataclass(frozen=True)
class LanguageConfig:
    """A grid of runs: every arm, temperature, weight and seed."""

    arms: tuple[str, ...] = setting(
        ("none",), f"Some of {', '.join((*ARMS, N_GRAM, ENSEMBLE))}."
    )
    temperatures: tuple[float, ...] = setting((1.0,), "Of KD.")
    weights: tuple[float, ...] = setting((0.5,), "Of KD; the text has the rest.")
    stage: str = setting("main", "Which tables runs are in: main or trials.")
    corpus: str = setting("ptb", "The corpus.")
    fraction: float = setting(0.0625, "Share of its training text.")
    width: int = setting(200, "Of embedding and two layers.")
    batch_size: int = setting(20, "Rows of a batch.")
    window: int = setting(35, "Tokens of a window.")
    epochs: int = setting(20, "Passes over the text.")
    input_dropout: float = setting(0.329, "Rate.")
    layer_dropout: float = setting(0.333, "Rate.")
    state_dropout: float = setting(0.301, "Rate.")
    output_dropout: float = setting(0.689, "Rate.")
    learning_rate: float = setting(7.29e-3, "Of Adam, without a first moment.")
    decay: float = setting(3.12e-4, "The penalty l2.")
    coefficient: float = setting(0.1, "Of IMM with a bigram.")
    lipschitz: float = setting(
        1e-3,
        "Of the teacher that is trained for students: 0.2 nats at the start; the "
        "published 1e-5, of another sum of other networks, would be 0.002.",
    )
    consistency: float = setting(1.0, "Likewise.")
    k: int = setting(64, "Words of a token that are stored of teachers.")

    def check(self) -> None:
        """Raises ValueError for settings that no run can have."""
        for arm in self.arms:
            if arm not in ARMS and arm not in (N_GRAM, ENSEMBLE):
                raise ValueError(
                    f"--arms must be some of {', '.join((*ARMS, N_GRAM, ENSEMBLE))}; "
                    f"found {arm}."
                )
        if self.stage not in ("main", "trials"):
            raise ValueError(f"--stage must be main or trials; found {self.stage}.")
        if not 0 < self.fraction <= 1:
            raise ValueError(f"--fraction must lie in (0, 1]; found {self.fraction}.")
        for name in _RATES:
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"--{name} must lie in [0, 1).")
        for name in ("arms", "temperatures", "weights"):
            if not getattr(self, name):
                raise ValueError(f"--{name} must name at least one.")
        for weight in self.weights:
            if not 0 <= weight <= 1:
                raise ValueError(f"--weights must lie in [0, 1]; found {weight}.")
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, int) and value < 1:
                raise ValueError(f"--{field.name} must be at least 1, found {value}.")


_SMALL = LanguageConfig()
PRESETS = {
    # Seconds: does everything run?
    "smoke": LanguageConfig(
        arms=(
            N_GRAM,
            "imm",
            "of-n-gram",
            "of-1",
            "of-soteacher",
            "of-5-folds",
            "of-5-dynamic",
            "of-1-dropout",
            "on-policy",
            "longer",
            "half",
        ),
        corpus="python-docs",
        fraction=0.02,
        width=6,
        batch_size=4,
        window=8,
        epochs=1,
        k=8,
    ),
    # Another seed, half of the epochs.
    "trials": dataclasses.replace(
        _SMALL,
        arms=("of-1",),
        temperatures=(1.0, 2.0),
        weights=(0.5, 0.9),
        stage="trials",
        epochs=10,
    ),
    # Models that teach in trials; other students bring along those of the seeds behind
    # their own.
    "plain": dataclasses.replace(_SMALL, arms=("none",)),
    "small": dataclasses.replace(
        _SMALL,
        arms=(
            N_GRAM,
            "none",
            "longer",
            "imm",
            "of-n-gram",
            "of-1",
            "of-soteacher",
            "of-5",
            "of-5-folds",
            "of-5-dynamic",
            "of-5-imm",
            "half",
            "half-of-5",
            ENSEMBLE,
        ),
    ),
    # One seed, no claim.
    "others": dataclasses.replace(_SMALL, arms=("on-policy", "of-1-dropout")),
}
GRID = Grid("distill_language", PRESETS, "running:runs_of", reads_data=True)
