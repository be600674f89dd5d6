"""Settings that studies of encoders share."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from rlm_tf.command_line.flags import setting


@dataclasses.dataclass(frozen=True)
class EncoderConfig:
    """A text, rows of it, an encoder, and its training."""

    corpus: str = setting("wikitext-2", "The corpus.")
    fraction: float = setting(1.0, "Share of the training text.")
    pieces: int = setting(8000, "Size of the vocabulary.")
    length: int = setting(64, "Pieces of a row.")
    batch_size: int = setting(32, "Rows of a step.")
    layers: int = setting(4, "Layers of the encoder.")
    width: int = setting(128, "Its width.")
    heads: int = setting(2, "Heads of its attention.")
    positions: str = setting("t5", "t5, absolute, both or rotary.")
    buckets: int = setting(32, "Buckets of distances.")
    distance: int = setting(128, "The distance from which on all are in one bucket.")
    slope: float = setting(
        0.5, "If positive, heads begin by looking at neighbours (position_slope)."
    )
    norm: str = setting("pre", "pre or post: where layers normalise.")
    residual_scaling: str = setting("none", "none or admin.")
    initializer_range: float = setting(0.05, "Deviation of the first weights.")
    dropout: float = setting(0.0, "Rate of dropout.")
    mask_ratio: float = setting(0.15, "Share of the pieces that are masked.")
    steps: int = setting(3000, "Steps of training.")
    looks: int = setting(20, "Looks at held-out text while training.")
    warm_up: float = setting(0.1, "Share of the steps in which rates rise.")
    clip_norm: float = setting(1.0, "Of the gradient of each optimiser.")
    weight_decay: float = setting(0.01, "Decoupled.")
    beta_2: float = setting(0.98, "Of Adam.")
    epsilon: float = setting(1e-6, "Of Adam.")

    @property
    def steps_of_a_look(self) -> int:
        """Of training, between two looks."""
        return self.steps // self.looks

    # Names of settings that may be 0.
    may_be_zero: ClassVar[tuple[str, ...]] = ("slope", "weight_decay", "project_steps")

    def check(self) -> None:
        """Raises ValueError for settings that no run can have."""
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name in ("dropout", "warm_up"):
                if not 0 <= value < 1:
                    raise ValueError(
                        f"--{field.name} must lie in [0, 1), found {value}."
                    )
            elif field.name == "mask_ratio":
                if not 0 < value < 1:
                    raise ValueError(f"--mask_ratio must lie in (0, 1), found {value}.")
            elif field.name == "fraction":
                if not 0 < value <= 1:
                    raise ValueError(
                        f"--{field.name} must lie in (0, 1], found {value}."
                    )
            elif field.name in self.may_be_zero:
                if value < 0:
                    raise ValueError(
                        f"--{field.name} must not be negative, found {value}."
                    )
            elif isinstance(value, int | float) and not value > 0:
                raise ValueError(f"--{field.name} must be positive, found {value}.")
        if self.steps % self.looks:
            raise ValueError(
                f"--steps must be a multiple of --looks, found {self.steps} and "
                f"{self.looks}."
            )
