"""Settings of `experiments.bmi_variance`, and its presets."""

from __future__ import annotations

import dataclasses

from rlm_tf.command_line.flags import setting


@dataclasses.dataclass(frozen=True)
class VarianceConfig:
    """Which model, and how often its gradients are drawn."""

    model: str = setting(
        "",
        "The .keras file of a model with BMI, as experiments.bmi_lm writes it; "
        "untrained: a small one with its first weights, to try the binary.",
    )
    corpus: str = setting("ptb", "The corpus.")
    fraction: float = setting(0.125, "Share of the training text.")
    pairs: int = setting(12, "Pairs of a batch.")
    most_tokens: int = setting(40, "Tokens of a sentence at most.")
    batches: int = setting(200, "Gradients of each estimator.")
    seed: int = setting(1, "Of batches and samples.")

    def check(self) -> None:
        """Raises ValueError for settings that no study can have."""
        for name, least in (("pairs", 1), ("most_tokens", 2), ("batches", 2)):
            if getattr(self, name) < least:
                raise ValueError(
                    f"--{name} must be at least {least}, found {getattr(self, name)}."
                )
        if not self.model:
            raise ValueError(
                "--model must be the .keras file of a model with BMI; `python -m "
                "experiments.bmi_lm --preset=small` trains some."
            )
        if not 0 < self.fraction <= 1 or self.seed < 0:
            raise ValueError(
                "--fraction must lie in (0, 1], and --seed not be negative."
            )


PRESETS = {
    "smoke": VarianceConfig(
        model="untrained",
        corpus="python-docs",
        fraction=0.02,
        pairs=4,
        most_tokens=6,
        batches=3,
    ),
    "small": VarianceConfig(),
}
