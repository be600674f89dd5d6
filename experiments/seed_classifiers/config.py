"""Settings of `experiments.seed_classifiers`, and its presets."""

from __future__ import annotations

import dataclasses

from experiments.kit.grids import Grid
from experiments.kit.seed_config import ARMS, SeedStudyConfig
from experiments.kit.seed_list import PLANTED
from rlm_tf.command_line.flags import setting

# The comparison; the choice of epochs and rates; fractions (Figure C.1) and deletion
# ratios (Figure 3.3, bottom); how the pool is kept.
STAGES = ("main", "tune", "fractions", "ratios", "pools", "peers")
POOLS = ("refreshed", "accumulated")
# Peers that no training of ours is part of.
PEERS = ("rule", "majority-vote", "snorkel", "cleanlab", "linear-sklearn")


@dataclasses.dataclass(frozen=True)
class ClassifiersConfig(SeedStudyConfig):
    """A grid of runs: every set, arm and seed."""

    arms: tuple[str, ...] = setting(tuple(ARMS), f"Some of {', '.join(ARMS)}.")
    stage: str = setting("main", f"Which table runs are in: {', '.join(STAGES)}.")
    pool: str = setting("refreshed", f"Of self-training: {', '.join(POOLS)}.")
    ratio: float = setting(0.0, "Of deletion; 0: the best by Eq. 3.3.")

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
        if not 0 <= self.ratio < 1:
            raise ValueError(f"--ratio must lie in [0, 1), found {self.ratio}.")


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
        arms=("vanilla", "o2u", "lops", "random-deletion", "ours-selected"),
    ),
    "small": _MAIN,
    # Other seeds than those of the comparison.
    "tune": dataclasses.replace(
        _MAIN,
        sets=("20news-coarse",),
        arms=("vanilla", "standard", "random-deletion", "ours-random", "oracle"),
        iterations=0,
        stage="tune",
    ),
    "fractions": dataclasses.replace(
        _MAIN,
        sets=("ag-news",),
        arms=("standard", "seed-deletion", "random-deletion"),
        stage="fractions",
    ),
    "ratios": dataclasses.replace(
        _MAIN, sets=("ag-news",), arms=("random-deletion",), stage="ratios"
    ),
    "pools": dataclasses.replace(
        _MAIN,
        sets=("ag-news",),
        arms=("vanilla", "random-deletion", "ours-random"),
        pool="accumulated",
        stage="pools",
    ),
    "peers": dataclasses.replace(_MAIN, arms=PEERS, stage="peers"),
}
GRID = Grid("seed_classifiers", PRESETS, "running:runs_of", reads_data=True)
