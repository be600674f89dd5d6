"""Settings of `experiments.seed_selection`, its probes and presets."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from experiments.kit.grids import Grid
from experiments.kit.seed_config import TunedStudyConfig
from experiments.kit.seed_list import PLANTED
from rlm_tf.command_line.flags import setting

# What a probe is trained with: options of `WordDeletion` ("ratio": True is the set's
# best), labels flipped at random, some epochs alone; and how it is asked: on what
# deletion leaves, or by the mean of passes with dropout. What else is chosen is that of
# the arm `standard`, of all alike.
PROBES: Mapping[str, dict[str, Any]] = {
    "vanilla": {},
    "random-flip": {"flip": True},
    "seed-deletion": {"deletion": {"ratio": 0.0, "seeds": "only"}},
    "random-deletion": {"deletion": {"ratio": True}},
    "seeds-kept": {"deletion": {"ratio": True, "seeds": "kept"}},
    "seeds-first": {"deletion": {"ratio": True, "seeds": "first"}},
    "one-copy": {"deletion": {"ratio": True, "fixed": True}},
    "on-corrupted": {"deletion": {"ratio": True}, "corrupted": True},
    "dropout": {"dropout": 0.5},
    "mc-dropout-3": {"dropout": 0.5, "passes": 3},
    "mc-dropout-10": {"dropout": 0.5, "passes": 10},
    "early-1": {"epochs": 1},
    "early-2": {"epochs": 2},
    "late-8": {"epochs": 8},
}


@dataclasses.dataclass(frozen=True)
class SelectionConfig(TunedStudyConfig):
    """A grid of runs: every set, probe and seed."""

    probes: tuple[str, ...] = setting(tuple(PROBES), f"Some of {', '.join(PROBES)}.")

    def check(self) -> None:
        """Raises ValueError for settings that no run can have."""
        super().check()
        if not self.probes or not set(self.probes) <= set(PROBES):
            raise ValueError(
                f"--probes must be some of {', '.join(PROBES)}; found "
                f"{', '.join(self.probes) or 'none'}."
            )


PRESETS = {
    # Seconds: does everything run?
    "smoke": SelectionConfig(
        sets=(PLANTED,),
        length=16,
        epochs=2,
        rate=0.05,
        probes=("vanilla", "random-flip", "on-corrupted", "mc-dropout-3", "early-1"),
        least_steps=0,
    ),
    "small": SelectionConfig(sets=("ag-news", "20news-coarse")),
}
GRID = Grid("seed_selection", PRESETS, "running:runs_of", reads_data=True)
