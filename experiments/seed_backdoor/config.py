"""Settings of `experiments.seed_backdoor`, its defences and presets."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from experiments.kit.grids import Grid
from experiments.kit.seed_config import SeedStudyConfig
from experiments.kit.seed_list import PLANTED
from rlm_tf.command_line.flags import setting

# What is done against the trigger: words deleted at random as the classifier learns
# ("deletes"), labels selected by a probe that learns so or not (or as many drawn, which
# is the control), the mean over copies of what is asked, with deletion in training and
# without, or whole vectors of words dropped; and a linear model of tf-idf, the simple
# peer, with words deleted and without.
DEFENCES: Mapping[str, dict[str, Any]] = {
    "none": {},
    "deletion": {"deletes": True},
    "selection": {"selects": "deletion"},
    "plain-selection": {"selects": "plain"},
    "copies": {"deletes": True, "copies": True},
    "copies-alone": {"copies": True},
    "dropout-2d": {"drops": True},
    "random-half": {"draws": True},
    "linear": {"linear": True},
    "linear-deletion": {"linear": True, "deletes": True},
}


@dataclasses.dataclass(frozen=True)
class BackdoorConfig(SeedStudyConfig):
    """A grid of runs: every set, share, defence and seed."""

    defences: tuple[str, ...] = setting(
        tuple(DEFENCES), f"Some of {', '.join(DEFENCES)}."
    )
    shares: tuple[float, ...] = setting(
        (0.01, 0.05, 0.1), "Of other classes' training documents that are poisoned."
    )
    trigger: str = setting("mbqtx", "The word that is put in.")
    ratio: float = setting(0.5, "Of words that go, in training and of copies.")
    copies: int = setting(10, "Of a document, whose mean is the prediction.")

    def check(self) -> None:
        """Raises ValueError for settings that no run can have."""
        super().check()
        if not self.defences or not set(self.defences) <= set(DEFENCES):
            raise ValueError(
                f"--defences must be some of {', '.join(DEFENCES)}; found "
                f"{', '.join(self.defences) or 'none'}."
            )
        if not self.shares or any(not 0 < share < 1 for share in self.shares):
            raise ValueError("--shares must lie in (0, 1).")
        if not self.trigger.isalpha():
            raise ValueError(f"--trigger must be a word, found {self.trigger!r}.")
        if not 0 < self.ratio < 1:
            raise ValueError(f"--ratio must lie in (0, 1), found {self.ratio}.")
        if self.copies < 1:
            raise ValueError(f"--copies must be positive, found {self.copies}.")


PRESETS = {
    # Seconds: does everything run?
    "smoke": BackdoorConfig(
        sets=(PLANTED,), length=16, epochs=2, rate=0.05, shares=(0.1,), copies=2
    ),
    "small": BackdoorConfig(sets=("ag-news",)),
}
GRID = Grid("seed_backdoor", PRESETS, "running:runs_of", reads_data=True)
