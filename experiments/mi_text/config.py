"""Settings of `experiments.mi_text`, and its presets."""

from __future__ import annotations

import dataclasses

from rlm_tf.command_line.flags import setting
from rlm_tf.commands.information.settings import CRITICS

# Parts that make `REPEATED` anew, and the seeds with which they do.
OTHER_SEEDS = {"seed_1": 1, "seed_2": 2}
# The same of critics at a gap where texts differ, a part by itself as they are slow.
FAR_SEEDS = {"far_1": 1, "far_2": 2}
PARTS = (
    "real",
    "gaps",
    "critics",
    "lengths",
    "controls",
    "steps",
    *OTHER_SEEDS,
    "far",
    *FAR_SEEDS,
)
REPEATED = ("gaps", "lengths", "controls")


@dataclasses.dataclass(frozen=True)
class TextConfig:
    """Texts, and how often they are estimated."""

    corpora: tuple[str, ...] = setting(("ptb", "wikitext-2"), "Texts to compare.")
    most_tokens: int | None = setting(None, "Of a corpus only the first are used.")
    segment: int = setting(40, "Tokens of a segment.")
    gap: int = setting(10, "Tokens between two segments, where nothing else is said.")
    folds: int = setting(10, "Blocks that a text is cut into.")
    real_folds: int = setting(
        10, "How many of the folds are computed of whole corpora."
    )
    gaps_of: tuple[int, ...] = setting((0, 10, 100, 300, 1000), "Of the curve.")
    gaps_folds: int = setting(5, "The same of each gap.")
    critics_of: tuple[str, ...] = setting(CRITICS, "Which are compared.")
    critics_folds: int = setting(3, "The same of each critic.")
    lengths_of: tuple[int, ...] = setting(
        (116_198, 200_000, 500_000), "First tokens of each corpus."
    )
    lengths_folds: int = setting(5, "The same of each length.")
    controls_folds: int = setting(3, "The same of shuffled texts.")
    steps_of: tuple[int, ...] = setting((12_000,), "Most steps of critics.")
    steps_dropouts: tuple[float, ...] = setting(
        (0.7, 0.85), "Shares of positions that are dropped meanwhile."
    )
    steps_folds: int = setting(5, "The same of these.")
    far_gap: int = setting(100, "At which critics are compared once more.")
    far_steps: int = setting(12_000, "Most steps of these.")
    far_dropout: float = setting(0.7, "Share of positions they drop meanwhile.")
    far_folds: int = setting(3, "The same of each of these.")
    seed: int = setting(0, "Of critics, batches and shuffling.")

    def check(self) -> None:
        """Raises ValueError for settings that no study can have."""
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, tuple) and not value:
                raise ValueError(f"--{field.name} must name at least one.")
            if field.name.endswith("_folds") and not 2 <= value <= self.folds:
                raise ValueError(
                    f"--{field.name} must be 2 at least and at most --folds, "
                    f"{self.folds}; found {value}."
                )
        for critic in self.critics_of:
            if critic not in CRITICS:
                raise ValueError(
                    f"--critics_of must be some of {', '.join(CRITICS)}; found "
                    f"{critic}."
                )
        if self.folds < 3:
            raise ValueError(f"--folds must be at least 3, found {self.folds}.")
        if min(self.segment, self.far_steps, *self.lengths_of, *self.steps_of) < 1:
            raise ValueError(
                "--segment, --far_steps, --lengths_of and --steps_of must be positive."
            )
        if any(not 0 <= rate < 1 for rate in (*self.steps_dropouts, self.far_dropout)):
            raise ValueError("--steps_dropouts and --far_dropout must lie in [0, 1).")
        if min(*self.gaps_of, self.gap, self.far_gap, self.seed) < 0:
            raise ValueError(
                "--gap, --gaps_of, --far_gap and --seed must not be negative."
            )
        if self.seed in OTHER_SEEDS.values():
            raise ValueError(
                f"--seed must not be {self.seed}, which other parts have: "
                f"{', '.join(OTHER_SEEDS)}."
            )


PRESETS = {
    "smoke": TextConfig(
        corpora=("python-docs",),
        most_tokens=1000,
        segment=4,
        folds=3,
        real_folds=2,
        gaps_of=(3,),
        gaps_folds=2,
        critics_of=("separable",),
        critics_folds=2,
        lengths_of=(900,),
        lengths_folds=2,
        controls_folds=2,
        steps_of=(100,),
        steps_dropouts=(0.0,),
        steps_folds=2,
        far_gap=3,
        far_steps=100,
        far_dropout=0.0,
        far_folds=2,
    ),
    "small": TextConfig(),
}
