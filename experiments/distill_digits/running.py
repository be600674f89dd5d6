"""The runs of the study: teachers, and students of their files."""

from __future__ import annotations

import dataclasses
import functools
import pathlib
import time
from typing import Any, NamedTuple

import keras

from experiments.distill_digits import projecting, students, teachers
from experiments.distill_digits.config import GRID, TEACHERS, DigitsConfig
from experiments.distill_digits.data import Parts, drawn
from experiments.kit import machine
from experiments.kit.grids import command_of
from experiments.kit.run_list import Run

NEEDS = ("name", "role", "teacher", "seed", "test")
# What can be learnt from several teachers, of which there are no features.
_OF_OUTPUTS = ("kd", "dkd", "dist", "dist_unscaled")
# Settings that say which runs there are.
_LISTS = ("teachers", "methods", "networks", "train_teachers")


class DigitsRun(NamedTuple):
    """A run that may begin.

    Attributes:
        config: The list that it belongs to.
        teacher: Of `TEACHERS`; of a student that is alone "".
        method: Of a student; of a teacher "".
        network: Its own.
        seed: Of digits, weights and draws.
    """

    config: DigitsConfig
    teacher: str
    method: str
    network: str
    seed: int

    @property
    def name(self) -> str:
        """Of the folder and the row."""
        end = f"seed{self.seed}"
        if self.config.data != "digits":
            end = f"{self.config.data}-{end}"
        if not self.method:
            return f"teacher-{self.teacher}-{self.network}-{end}"
        network = self.config.teacher_network
        of = f"-of-{self.teacher}-{network}" if self.teacher else ""
        return f"{self.network}-{self.method}{of}-{end}"

    @property
    def settings(self) -> dict[str, Any]:
        """What identifies the run."""
        common = dataclasses.asdict(self.config)
        for name in _LISTS:
            common.pop(name)
        own = self._replace(config=self.config)._asdict()
        own.pop("config")
        return {**common, **own}


def runs_of(config: DigitsConfig, seeds: list[int]) -> list[Run]:
    """Returns teachers first, then students; or those that are timed in their place."""
    if config.project_steps:
        return [_projected(config, seeds[0])]
    runs: list[Run] = []
    for seed in seeds:
        make = functools.partial(DigitsRun, config, seed=seed)
        if config.train_teachers:
            runs += [
                _run(make(teacher=each, method="", network=config.teacher_network))
                for each in config.teachers
            ]
        for network in config.networks:
            if "alone" in config.methods:
                runs.append(_run(make(teacher="", method="alone", network=network)))
            runs += [
                _run(make(teacher=each, method=method, network=network))
                for each in config.teachers
                for method in config.methods
                if method != "alone" and _may_teach(each, method)
            ]
    return runs


def _projected(config: DigitsConfig, seed: int) -> Run:
    """Returns the run that times some steps of teachers and students."""
    settings = {**dataclasses.asdict(config), "seed": seed}

    def timed(_: Any, folder: pathlib.Path) -> dict[str, Any]:
        return {
            "name": folder.name,
            "command": command_of(GRID, config, seed),
            "role": "projected",
            "data": config.data,
            **projecting.project(config, seed),
            "machine": machine.environment()["machine"],
            "commit": machine.commit(),
            "finished": time.strftime("%Y-%m-%d"),
        }

    needs = ("name", "role", "hours")
    name = "-".join(("project", config.data, *config.networks))
    return Run(name, settings, lambda: None, timed, needs)


def _may_teach(teacher: str, method: str) -> bool:
    """Whether a method can learn from a teacher: of several there are outputs alone."""
    return not TEACHERS[teacher].get("folds") or method in _OF_OUTPUTS


def teacher_of(run: DigitsRun) -> str:
    """Returns the name of a student's teacher's run."""
    network = run.config.teacher_network
    return run._replace(method="", network=network).name


def _run(run: DigitsRun) -> Run:
    return Run(
        run.name,
        run.settings,
        functools.partial(_prepare, run),
        functools.partial(_train, run),
        NEEDS,
    )


def _prepare(run: DigitsRun) -> Parts:
    keras.utils.set_random_seed(run.seed)
    return drawn(run.config, run.seed)


def _train(run: DigitsRun, data: Parts, folder: pathlib.Path) -> dict[str, Any]:
    if run.method:
        place = folder.parent / teacher_of(run) if run.teacher else None
        found = students.train(
            run.config, data, place, run.method, run.network, run.seed, folder
        )
    else:
        found = teachers.train(
            run.config, data, run.teacher, run.network, run.seed, folder
        )
    chosen: dict[str, Any] = {"teachers": run.teacher or "standard"}
    if run.method:
        chosen |= {"methods": run.method, "networks": run.network}
    return {
        "name": folder.name,
        "command": command_of(GRID, run.config, run.seed, **chosen),
        "role": "student" if run.method else "teacher",
        **{name: getattr(run, name) for name in ("teacher", "method", "network")},
        "teacher_network": run.config.teacher_network if run.teacher else "",
        "seed": run.seed,
        "data": run.config.data,
        **found,
        "machine": machine.environment()["machine"],
        "commit": machine.commit(),
        "finished": time.strftime("%Y-%m-%d"),
    }
