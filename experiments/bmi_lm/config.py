"""Settings of `experiments.bmi_lm`, its arms and presets."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal

from experiments.kit.grids import Grid
from rlm_tf.command_line.flags import setting

# Which phases an arm has, whether it is given more epochs, and what of a sentence's
# features the discriminator sees where that is not the paper's.
ARMS: Mapping[str, dict[str, Any]] = {
    "none": {},
    "none-long": {"long": True},
    "base": {"phases": 1},
    "full": {"phases": 2},
    "base-last": {"phases": 1, "pooling": "last"},
    "full-last": {"phases": 2, "pooling": "last"},
}
_MAIN = ("none", "none-long", "base", "full")
# What was tried of the model without BMI.
TRIALS: Mapping[str, dict[str, Any]] = {
    "published": {},
    "more-dropout": {"input_dropout": 0.5, "output_dropout": 0.5, "layer_dropout": 0.3},
    "less-weight-drop": {"weight_drop": 0.3},
    "higher-rate": {"learning_rate": 30.0},
}
# The best of them on validation text (preset `base`).
_CHOSEN = "higher-rate"
# The best for Phase I (preset `weights`); the paper has 0.1.
_WEIGHT = 0.01
# What the authors' code has in place of the paper's text, by corpus: the discriminator,
# and the weight of Phase II, which the text gives the weight of Phase I.
AUTHORS: Mapping[str, dict[str, Any]] = {
    "ptb": {
        "units": 300,
        "feature_dropout": 0.1,
        "hidden_dropout": 0.3,
        "raml_weight": 1.0,
    },
    "wikitext-2": {
        "units": 100,
        "feature_dropout": 0.1,
        "hidden_dropout": 0.1,
        "raml_weight": 0.05,
    },
}
_AUTHORS_PATIENCE = 10


@dataclasses.dataclass(frozen=True)
class LanguageConfig:
    """A grid of runs: every trial, arm, weight and seed."""

    arms: tuple[str, ...] = setting(_MAIN, f"Some of {', '.join(ARMS)}.")
    trials: tuple[str, ...] = setting(("published",), f"Some of {', '.join(TRIALS)}.")
    weights: tuple[float, ...] = setting((0.1,), "Of BMI, of both phases.")
    variant: str = setting(
        "paper",
        "paper: its text; authors: of their code what is an option: two directions, "
        "order and width of the discriminator, scale, tail, two weights, patience.",
    )
    corpus: str = setting("ptb", "The corpus.")
    fraction: float = setting(0.125, "Share of the training text.")
    units: tuple[int, ...] = setting((200, 200), "Widths of the layers.")
    embedding: int = setting(200, "Width of the embedding.")
    mixture_components: int = setting(1, "Softmaxes.")
    learning_rate: float = setting(20.0, "Of gradient descent.")
    finetune_ratio: float = setting(1.25, "Rate of finetuning over that before.")
    clip_norm: float = setting(0.25, "Of the gradient of each part.")
    l2: float = setting(1.2e-6, "Penalty on all weights of the language model.")
    input_dropout: float = setting(0.4, "Rate on embedded words.")
    layer_dropout: float = setting(0.225, "Rate between layers.")
    output_dropout: float = setting(0.4, "Rate on the last layer.")
    projection_dropout: float = setting(0.29, "Rate on the vectors of softmaxes.")
    word_dropout: float = setting(0.1, "Rate of whole words.")
    weight_drop: float = setting(0.5, "Rate on recurrent matrices.")
    batch_size: int = setting(12, "Streams.")
    window: int = setting(70, "Usual tokens of a window.")
    pairs: int = setting(12, "Pairs of a step.")
    discriminator_units: int = setting(500, "Of the discriminator.")
    patience: int = setting(5, "Epochs of the trigger of averaging.")
    epochs: int = setting(24, "Epochs; averaging begins at half of them at the latest.")
    long_epochs: int = setting(24, "Epochs of the arm with more of them.")
    finetune_epochs: int = setting(6, "Epochs of finetuning.")
    long_finetune_epochs: int = setting(6, "The same of the arm with more of them.")
    two_tailed: bool = setting(True, "Whether 2TA averages the same iterates, too.")
    project_steps: int = setting(
        0, "Time so many steps of each phase instead, and project the hours of all."
    )

    @property
    def tail(self) -> Literal["infinite", "renormalised"]:
        """Of offsets of pairs: the authors cut offsets, and not their probabilities."""
        return "infinite" if self.variant == "authors" else "renormalised"

    @property
    def own_patience(self) -> int:
        """Epochs without gain after which averaging begins."""
        return _AUTHORS_PATIENCE if self.variant == "authors" else self.patience

    def check(self) -> None:
        """Raises ValueError for settings that no run can have."""
        for name, known in (("arms", ARMS), ("trials", TRIALS)):
            given = getattr(self, name)
            if not given:
                raise ValueError(f"--{name} must name at least one.")
            for each in given:
                if each not in known:
                    raise ValueError(
                        f"--{name} must be some of {', '.join(known)}; found {each}."
                    )
        if self.variant not in ("paper", "authors"):
            raise ValueError(
                f"--variant must be paper or authors; found {self.variant!r}."
            )
        if self.variant == "authors" and self.corpus not in AUTHORS:
            raise ValueError(
                f"--variant=authors is of --corpus={' or '.join(AUTHORS)}; found "
                f"{self.corpus}."
            )
        if not self.weights or min(self.weights) <= 0:
            raise ValueError("--weights must be positive numbers, at least one.")
        if not self.units or min(self.units) < 1:
            raise ValueError("--units must be positive integers, at least one.")
        if not 0 < self.fraction <= 1:
            raise ValueError(f"--fraction must lie in (0, 1], found {self.fraction}.")
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name.endswith(("dropout", "weight_drop")):
                if not 0 <= value < 1:
                    raise ValueError(
                        f"--{field.name} must lie in [0, 1), found {value}."
                    )
            elif field.name in ("l2", "finetune_epochs", "long_finetune_epochs"):
                if value < 0:
                    raise ValueError(
                        f"--{field.name} must not be negative, found {value}."
                    )
            elif (
                isinstance(value, int | float)
                and not isinstance(value, bool)
                and field.name != "project_steps"
                and not value > 0
            ):
                raise ValueError(f"--{field.name} must be positive, found {value}.")


_PAPER = LanguageConfig(
    arms=("none", "base", "full"),
    fraction=1.0,
    units=(960, 960, 620),
    embedding=280,
    mixture_components=15,
    epochs=1000,
    finetune_epochs=0,
    project_steps=2,
)
PRESETS = {
    # Seconds: does everything run?
    "smoke": LanguageConfig(
        arms=("none", "full"),
        corpus="python-docs",
        fraction=0.02,
        units=(8, 6),
        embedding=6,
        window=20,
        epochs=2,
        finetune_epochs=1,
        patience=1,
        discriminator_units=8,
    ),
    "base": LanguageConfig(
        arms=("none",), trials=tuple(TRIALS), finetune_epochs=0, two_tailed=False
    ),
    "weights": LanguageConfig(
        arms=("none", "base"),
        trials=(_CHOSEN,),
        weights=(0.01, 0.02, 0.05, 0.1, 1.0),
        epochs=8,
        finetune_epochs=0,
        two_tailed=False,
    ),
    # Without BMI as many more epochs take the seconds of both phases.
    "small": LanguageConfig(
        arms=(*_MAIN, "full-last"),
        trials=(_CHOSEN,),
        weights=(_WEIGHT,),
        long_epochs=36,
        long_finetune_epochs=13,
    ),
    "paper-weight": LanguageConfig(arms=("full",), trials=(_CHOSEN,)),
    "paper": _PAPER,
    "paper-wikitext-2": dataclasses.replace(
        _PAPER,
        corpus="wikitext-2",
        weights=(0.02,),
        units=(1150, 1150, 650),
        embedding=300,
        learning_rate=15.0,
        layer_dropout=0.2,
        input_dropout=0.55,
        batch_size=15,
        pairs=10,
    ),
}
GRID = Grid("bmi_lm", PRESETS, reads_data=True)
