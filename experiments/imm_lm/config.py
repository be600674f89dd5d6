"""Settings of one training run of `experiments.imm_lm`, and its presets."""

from __future__ import annotations

import dataclasses
import math

from rlm_tf.command_line.flags import setting

ARMS = (
    "none",
    "interpolation",
    "noising-blank",
    "noising-unigram",
    "noising-bigram-kn",
    "noising-bigram-kn-modified",
    "imm-in-batch",
    "imm-sampled",
)


@dataclasses.dataclass(frozen=True)
class RunConfig:
    """One run: an arm, a corpus, a model, an optimiser and a seed."""

    arm: str = setting("none", f"What helps training: {', '.join(ARMS)}.")
    corpus: str = setting("python-docs", "Name of a corpus, or a text file.")
    fraction: float = setting(1.0, "First part of the training text that is used.")
    seed: int = setting(1, "Seed of initialisation, dropout, noise and samples.")

    width: int = setting(200, "Width of embedding and layers.")
    num_layers: int = setting(2, "Number of LSTM layers.")
    dropout: float = setting(0.3, "Dropout rate on inputs and layer outputs.")

    batch_size: int = setting(20, "Rows of a batch.")
    window: int = setting(35, "Time steps of a window; losses are scaled by it.")
    epochs: int = setting(25, "Passes over the training text.")
    learning_rate: float = setting(1.0, "Of plain gradient descent.")
    decay: float = setting(0.5, "Multiplies the rate after an epoch without gain.")
    max_decays: int | None = setting(20, "Decays after which the next one stops.")
    clip_norm: float = setting(5.0, "Clipping norm of the summed-over-time gradient.")

    restricted_text: str = setting(
        "same", "Text of the restricted model: 'same' fraction, or 'all' of it."
    )
    restricted_order: int = setting(2, "Order of the Kneser-Ney model.")
    coefficient: float = setting(0.2, "lambda of IMM.")
    min_count: int = setting(5, "In-batch: least predictions behind an induced model.")
    pass_mode: str = setting("training", "In-batch: 'training' or 'evaluation' pass.")
    separate_clipping: bool = setting(False, "In-batch: clip each term on its own.")
    bank_size: int = setting(0, "In-batch: positions in the bank of predictions.")
    bank_target: int | None = setting(None, "In-batch: fill groups up to this count.")
    k: int = setting(10, "Sampled: extended contexts a position.")
    every: int = setting(1, "Sampled: k samples at every so many steps, else one.")
    gradient: str = setting("crosstalk", "Sampled: 'crosstalk' or 'direct'.")
    variant: str = setting("paper", "Sampled: 'paper' or 'authors'.")
    start_perplexity: float | None = setting(
        None, "IMM starts once validation perplexity is below this."
    )
    start_learning_rate: float | None = setting(
        None, "Learning rate set when IMM starts."
    )
    gamma0: float = setting(0.2, "Noising: scale of the noising probability.")

    @property
    def name(self) -> str:
        """A short name of the run, unique within a study."""
        part = "" if self.fraction == 1 else f"-{round(1 / self.fraction)}th"
        return f"{self.arm_name}{part}-seed{self.seed}"

    @property
    def arm_name(self) -> str:
        """The arm and what sets two runs of it apart in tables."""
        name = self.arm
        if self.uses_imm and self.restricted_text == "all":
            name += "-all"
        if self.arm == "imm-in-batch" and self.min_count != RunConfig.min_count:
            name += f"-count{self.min_count}"
        return name

    @property
    def command(self) -> str:
        """The command of this run, but for the folders it reads and writes."""
        preset, given = PRESETS["small"], [f"--arm={self.arm}"]
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name in ("arm", "seed") or value == getattr(preset, field.name):
                continue
            given.append(f"--{field.name}={'none' if value is None else value}")
        given.append(f"--seeds={self.seed}")
        return " ".join(["python -m experiments.imm_lm", *given])

    @property
    def uses_imm(self) -> bool:
        """Whether the arm matches an induced model."""
        return self.arm.startswith("imm-")


PRESETS = {
    # Under a minute: does everything run?
    "smoke": RunConfig(
        fraction=0.05, width=16, num_layers=1, batch_size=8, window=12, epochs=2
    ),
    # Minutes on two cores, on the embedded corpus.
    "small": RunConfig(epochs=20, dropout=0.4, max_decays=6, min_count=1),
    # Section 6 and the published code: Penn Treebank, 66 million parameters.
    "paper": RunConfig(
        arm="imm-sampled",
        corpus="ptb",
        width=1500,
        dropout=0.65,
        epochs=400,
        every=5,
        k=10,
        start_perplexity=90.0,
        start_learning_rate=0.5,
    ),
}


_CHOICES = {
    "arm": ARMS,
    "restricted_text": ("same", "all"),
    "pass_mode": ("training", "evaluation"),
    "gradient": ("crosstalk", "direct"),
    "variant": ("paper", "authors"),
}
_LEAST = {
    "width": 1,
    "num_layers": 1,
    "batch_size": 1,
    "window": 1,
    "epochs": 1,
    "min_count": 1,
    "bank_size": 0,
    "k": 1,
    "every": 1,
    "max_decays": 0,
}


def check_config(config: RunConfig) -> None:
    """Raises ValueError for settings that no run can have."""
    if not 0 < config.fraction <= 1:
        raise ValueError(f"--fraction must lie in (0, 1], found {config.fraction}.")
    if not 1 <= config.restricted_order <= 5:
        raise ValueError(
            f"--restricted_order must lie in 1..5, found {config.restricted_order}."
        )
    for field, choices in _CHOICES.items():
        if getattr(config, field) not in choices:
            raise ValueError(
                f"--{field} must be one of {', '.join(choices)}; found "
                f"{getattr(config, field)!r}."
            )
    for field, least in _LEAST.items():
        value = getattr(config, field)
        if value is not None and value < least:
            raise ValueError(f"--{field} must be at least {least}, found {value}.")
    if config.uses_imm and config.window < config.restricted_order - 1:
        raise ValueError(
            f"--window must hold a short context of --restricted_order "
            f"{config.restricted_order}, {config.restricted_order - 1} words; found "
            f"{config.window}."
        )
    if config.bank_target is not None and not config.bank_size:
        raise ValueError("--bank_target needs a bank: --bank_size is 0.")
    if config.bank_target is not None and config.bank_target < config.min_count:
        raise ValueError(
            f"--bank_target must not be below --min_count, {config.min_count}; found "
            f"{config.bank_target}."
        )
    positive = (
        "learning_rate",
        "clip_norm",
        "start_perplexity",
        "start_learning_rate",
    )
    for field in positive:
        value = getattr(config, field)
        if value is not None and not 0 < value < math.inf:
            raise ValueError(f"--{field} must be positive and finite, found {value}.")
    if not 0 < config.decay < 1:
        raise ValueError(f"--decay must lie in (0, 1), found {config.decay}.")
    if not 0 <= config.dropout < 1:
        raise ValueError(f"--dropout must lie in [0, 1), found {config.dropout}.")
    if not 0 <= config.coefficient < math.inf:
        raise ValueError(
            f"--coefficient must be finite and not negative, found "
            f"{config.coefficient}."
        )
    if not 0 <= config.gamma0 <= 1:
        raise ValueError(f"--gamma0 must lie in [0, 1], found {config.gamma0}.")
