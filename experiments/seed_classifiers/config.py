"""Settings of `experiments.seed_classifiers`, and its presets."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

from experiments.kit.grids import Grid
from experiments.kit.seed_config import (
    ARMS,
    DECAYS,
    EPOCHS,
    RATES,
    TunedStudyConfig,
    strength_of,
)
from experiments.kit.seed_list import PLANTED
from rlm_tf.command_line.flags import setting

# The comparison; the choice of epochs, rates and decays; fractions (Figure C.1) and
# deletion ratios (Figure 3.3, bottom); how the pool is kept.
STAGES = ("main", "tune", "fractions", "ratios", "pools", "peers", "tool")
POOLS = ("refreshed", "accumulated")
# Peers that no training of ours is part of.
PEERS = ("rule", "majority-vote", "snorkel", "cleanlab", "linear-sklearn")
# Of these, those that a model is fitted in.
FITTED = PEERS[1:]


# Settings that are taken in turn, and what each is in place of.
LISTS = {
    "fractions": "fraction",
    "ratios": "ratio",
    "epochs_of": "epochs",
    "rates": "rate",
    "decays": "decay",
    "strengths": "strength",
}


@dataclasses.dataclass(frozen=True)
class ClassifiersConfig(TunedStudyConfig):
    """A grid of runs: every set, arm and seed."""

    arms: tuple[str, ...] = setting(tuple(ARMS), f"Some of {', '.join(ARMS)}.")
    stage: str = setting("main", f"Which table runs are in: {', '.join(STAGES)}.")
    pool: str = setting("refreshed", f"Of self-training: {', '.join(POOLS)}.")
    ratio: float = setting(0.0, "Of deletion; 0: the best by Eq. 3.3.")
    fractions: tuple[float, ...] = setting((), "In turn, in place of --fraction.")
    ratios: tuple[float, ...] = setting((), "In turn, in place of --ratio.")
    epochs_of: tuple[int, ...] = setting((), "In turn, in place of --epochs.")
    rates: tuple[float, ...] = setting((), "In turn, in place of --rate.")
    decays: tuple[float, ...] = setting((), "In turn, in place of --decay.")
    strength: float | None = setting(
        None, "C, of the logistic regression of peers; none: what was chosen."
    )
    strengths: tuple[float, ...] = setting((), "In turn, in place of --strength.")

    def strength_of(self, peer: str) -> float:
        """Returns C of a peer's logistic regression."""
        return strength_of(peer) if self.strength is None else self.strength

    def variants(self) -> list[ClassifiersConfig]:
        """Returns the same with each of the settings that are to be taken in turn."""
        empty: dict[str, Any] = dict.fromkeys(LISTS, ())
        none = dataclasses.replace(self, **empty)
        values = [
            getattr(self, name) or (getattr(self, single),)
            for name, single in LISTS.items()
        ]
        return [
            dataclasses.replace(none, **dict(zip(LISTS.values(), own, strict=True)))
            for own in itertools.product(*values)
        ]

    def check(self) -> None:
        """Raises ValueError for settings that no run can have."""
        super().check()
        known = (*ARMS, *PEERS)
        if not self.arms or not set(self.arms) <= set(known):
            raise ValueError(
                f"--arms must be some of {', '.join(known)}; found "
                f"{', '.join(self.arms) or 'none'}."
            )
        for name, allowed in (("stage", STAGES), ("pool", POOLS)):
            if getattr(self, name) not in allowed:
                raise ValueError(
                    f"--{name} must be one of {', '.join(allowed)}; found "
                    f"{getattr(self, name)}."
                )
        for own in (self.ratio, *self.ratios):
            if not 0 <= own < 1:
                raise ValueError(f"--ratio must lie in [0, 1), found {own}.")
        given = () if self.strength is None else (self.strength,)
        if any(not own > 0 for own in (*given, *self.strengths)):
            raise ValueError("--strength and --strengths must be positive.")
        if any(not own >= 0 for own in self.decays):
            raise ValueError("--decays must not be negative.")
        if any(not 0 < own <= 1 for own in self.fractions):
            raise ValueError("--fractions must lie in (0, 1].")
        if any(not own > 0 for own in (*self.rates, *self.epochs_of)):
            raise ValueError("--rates and --epochs_of must be positive.")


_MAIN = ClassifiersConfig()
PRESETS = {
    # Seconds: does everything run?
    "smoke": ClassifiersConfig(
        sets=(PLANTED,),
        encoder="linear",
        length=16,
        epochs=2,
        rate=0.05,
        iterations=1,
        least_steps=0,
        arms=("vanilla", "o2u", "lops", "random-deletion", "ours-selected"),
    ),
    "small": _MAIN,
    # Other seeds than those of the comparison.
    "tune": dataclasses.replace(
        _MAIN,
        sets=("20news-coarse",),
        iterations=0,
        stage="tune",
        epochs_of=EPOCHS,
        rates=RATES,
        decays=DECAYS,
    ),
    "tune-peers": dataclasses.replace(
        _MAIN,
        sets=("20news-coarse",),
        arms=FITTED,
        stage="tune",
        # As many as an arm has epochs, rates and decays.
        strengths=(0.03, 0.1, 0.3, 1, 2, 3, 5, 10, 20, 30, 100, 300),
    ),
    "fractions": dataclasses.replace(
        _MAIN,
        sets=("ag-news",),
        arms=("standard", "seed-deletion", "random-deletion"),
        stage="fractions",
        fractions=(0.1, 0.3, 0.5, 0.7, 0.9),
    ),
    "ratios": dataclasses.replace(
        _MAIN,
        sets=("ag-news",),
        arms=("random-deletion", "ours-random"),
        stage="ratios",
        ratios=(0.1, 0.3, 0.5, 0.7, 0.9),
    ),
    "pools": dataclasses.replace(
        _MAIN,
        sets=("ag-news",),
        arms=("vanilla", "random-deletion", "ours-random"),
        pool="accumulated",
        stage="pools",
    ),
    "peers": dataclasses.replace(_MAIN, arms=PEERS, stage="peers"),
    # What the tool trains, as long as it does, on short texts, also with the shorter
    # lists of seeds of WeSTClass: what is its default to be?
    "tool": dataclasses.replace(
        _MAIN,
        sets=("ag-news", "ag-news-westclass"),
        encoder="linear",
        arms=("vanilla", "random-deletion", "words", "ours-seeds", "ours-random"),
        stage="tool",
        length=300,
        max_size=50_000,
        epochs=8,
        self_epochs=8,
        least_steps=400,
        rate=0.02,
        dropout=0.0,
        decays=DECAYS,
    ),
}
GRID = Grid("seed_classifiers", PRESETS, "running:runs_of", reads_data=True)
