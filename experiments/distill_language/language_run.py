"""A run of the study, and those that teach it."""

from __future__ import annotations

import dataclasses
import pathlib
from typing import Any, NamedTuple

from experiments.distill_language.config import ARMS, ENSEMBLE, FOLDS, LanguageConfig

# Settings that say which runs there are.
_LISTS = ("arms", "temperatures", "weights", "stage")


class LanguageRun(NamedTuple):
    """A run that may begin.

    Attributes:
        config: The grid that it belongs to.
        arm: Of `ARMS`, or a peer.
        temperature: Of KD; 0 where there is no teacher.
        weight: Likewise.
        seed: Of weights and dropout; of teachers those behind it.
    """

    config: LanguageConfig
    arm: str
    temperature: float
    weight: float
    seed: int

    @property
    def name(self) -> str:
        """Of its folder and its row."""
        how = ""
        if self.config.stage == "trials":
            how = f"-t{self.temperature:g}-w{self.weight:g}-{self.config.epochs}epochs"
        return f"{self.arm}{how}-seed{self.seed}"

    @property
    def settings(self) -> dict[str, Any]:
        """What identifies the run."""
        common = dataclasses.asdict(self.config)
        for name in _LISTS:
            common.pop(name)
        own = self._asdict()
        own.pop("config")
        return {**common, **own}


def teachers_of(run: LanguageRun) -> list[LanguageRun]:
    """Returns the runs that teach another; those of trials are not of their grid."""
    of = ENSEMBLE if run.arm == ENSEMBLE else ARMS.get(run.arm, {}).get("of")
    if run.config.stage == "trials" or of in (None, "n-gram", "folds"):
        return []
    arm = "soteacher" if of == "soteacher" else "none"
    return [
        run._replace(arm=arm, temperature=0.0, weight=0.0, seed=run.seed + next_)
        for next_ in _next(_number(run))
    ]


def plain_places(run: LanguageRun, folder: pathlib.Path) -> list[pathlib.Path]:
    """Returns the folders of the plain models that teach: those of the next seeds."""
    seeds = (run.seed + next_ for next_ in _next(_number(run)))
    return [folder.parent / f"none-seed{seed}" for seed in seeds]


def _number(run: LanguageRun) -> int:
    """Returns how many models teach; of what is no number, one."""
    of = ARMS[run.arm]["of"] if run.arm in ARMS else FOLDS
    return of if isinstance(of, int) else 1


def _next(number: int) -> range:
    return range(1, 1 + number)


def places_of(run: LanguageRun, folder: pathlib.Path) -> list[pathlib.Path]:
    """Returns the folders of the models that teach an arm."""
    of = ARMS[run.arm]["of"]
    if of == "soteacher":
        return [folder.parent / f"soteacher-seed{run.seed + 1}"]
    if of == "folds":
        return [folder.parent / "folds" / str(fold) for fold in range(FOLDS)]
    return plain_places(run, folder)
