"""A run of the study, and the settings that it has: of its arm, or of a trial."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

from experiments.kit import run_flags
from experiments.kit.tuning import suggested
from experiments.scarce_text.arms import (
    ARMS,
    ENSEMBLE,
    INITIAL,
    PEERS,
    PUBLISHED,
    SPACE,
    START,
    Values,
    chosen,
)
from experiments.scarce_text.config import ScarceConfig
from experiments.scarce_text.report import NEEDS
from experiments.scarce_text.zaremba import zaremba_settings

# Of the search.
_SEARCH_SEED = 1


class ScarceRun(NamedTuple):
    """A run that may begin.

    Attributes:
        config: The grid that it belongs to.
        arm: Its name.
        fraction: Share of the training text.
        trial: Number of a trial, from 1 on; 0: none.
        seeds: Of weights, dropout and noise; of an ensemble, those of its members.
    """

    config: ScarceConfig
    arm: str
    fraction: float
    trial: int
    seeds: tuple[int, ...]

    @property
    def seed(self) -> int:
        """The first, or only, seed."""
        return self.seeds[0]

    @property
    def member(self) -> str:
        """Of an ensemble, the arm whose seeds it is the mean of; else the arm."""
        return self.arm.removeprefix(ENSEMBLE)

    @property
    def is_ensemble(self) -> bool:
        """Whether it is the mean of runs."""
        return self.member != self.arm

    @property
    def name(self) -> str:
        """Of its folder and its row."""
        study = "projected" if self.config.project_steps else self.config.study
        kind = f"{study}-{self.arm}-{self.config.corpus}"
        part = "" if self.fraction == 1 else f"-{round(1 / self.fraction)}th"
        last = f"-trial{self.trial}" if self.trial else f"-seed{self.seed}"
        # What has no seed, or all of them.
        return f"{kind}{part}{'' if self.is_seedless else last}"

    @property
    def is_seedless(self) -> bool:
        """Whether its name has no seed."""
        return self.arm in PEERS or self.is_ensemble

    @property
    def chosen(self) -> dict[str, Any]:
        """What the run has of settings that are lists."""
        found = {"arms": self.arm, "fractions": self.fraction}
        return {**found, "trials": self.trial} if self.trial else found

    @property
    def settings(self) -> dict[str, Any]:
        """What identifies the run."""
        found = {**dataclasses.asdict(self.config), **self.chosen}
        # Rows that are older than this setting have not got it.
        if not found["project_steps"]:
            del found["project_steps"]
        found |= (
            {"seeds": list(self.seeds)} if self.is_ensemble else {"seed": self.seed}
        )
        # What a search chooses follows from the rows before.
        if self.arm not in PEERS and not (self.trial and self.arm == "none"):
            found["values"] = values_of(self)
        return found


def values_of(run: ScarceRun) -> Values:
    """Returns the settings of an arm, or of one of its trials.

    Raises:
        ValueError: If trials before it have no row.
    """
    if run.arm in PUBLISHED:
        return zaremba_settings(run.arm)
    if run.arm in PEERS:
        return {}
    if not run.trial:
        return chosen(run.member)
    if run.arm != "none":
        base = ARMS[run.arm].base
        own = ARMS[run.arm].trials[run.trial - 1]
        return dict(own) if base == run.arm else {**chosen(base), **own}
    tried = []
    _, rows = run_flags.folders()
    for number in range(1, run.trial):
        name = run._replace(trial=number).name
        if name not in rows:
            raise ValueError(
                f"trial {run.trial} follows from those before; {name} has no row in "
                f"{rows.folder}: make it first (--trials)."
            )
        row = rows.read(name, NEEDS)
        # What diverged has none.
        reached = row["mixed_valid"] or math.inf
        tried.append((row["values"], math.log(reached)))
    if not tried:
        return dict(START)
    return suggested(SPACE, tried, initial=1 + INITIAL, seed=_SEARCH_SEED)
