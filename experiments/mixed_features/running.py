"""The runs of the study, and their rows."""

from __future__ import annotations

import dataclasses
import functools
import pathlib
import time
from collections.abc import Mapping
from typing import Any

from experiments.kit import machine
from experiments.kit.grids import command_of
from experiments.kit.run_list import Run
from experiments.mixed_features import judging, lemmas
from experiments.mixed_features.config import ARMS, GRID, MixedConfig
from experiments.mixed_features.instances import Instances, drawn
from experiments.mixed_features.training import Terms, learn, teach, tested

NEEDS = ("name", "stage")
_RAMPS = ("linear", "cosine", "cyclic", "piecewise")
_TRAIN, _TEST = 1, 2


def runs_of(config: MixedConfig, seeds: list[int]) -> list[Run]:
    """Returns the runs of all stages."""
    makers: list[tuple[str, Any]] = []
    for stage in config.stages:
        if stage == "arms":
            makers += [
                (f"examples-{count}", functools.partial(_arms, config, count))
                for count in config.examples
            ]
        elif stage == "checkpoints":
            makers.append(("checkpoints", functools.partial(_checkpoints, config)))
        elif stage == "sweep":
            makers.append(("sweep", functools.partial(_sweep, config)))
        elif stage == "noise":
            makers.append(("noise", functools.partial(_noise, config)))
        else:
            makers.append(("lemmas", functools.partial(_lemmas, config)))
    common = dataclasses.asdict(config)
    # Which runs there are says nothing of one.
    for listed in ("stages", "examples"):
        common.pop(listed)
    return [
        Run(
            f"{name}-seed{seed}",
            {**common, "run": name, "seed": seed},
            lambda: None,
            functools.partial(_row, config, name, make, seed),
            NEEDS,
        )
        for seed in seeds
        for name, make in makers
    ]


def terms_of(config: MixedConfig, arm: str) -> Terms:
    """Returns what an arm's teacher is trained with."""
    kind = ARMS[arm]
    return Terms(
        lipschitz=config.lipschitz * kind.get("lipschitz", 0.0),
        consistency=config.consistency * kind.get("consistency", 0.0),
        smoothing=config.smoothing if kind.get("smoothing") else 0.0,
        folds=config.folds if kind.get("folds") else 1,
        stops=bool(kind.get("stops")),
    )


def _row(
    config: MixedConfig, run: str, make: Any, seed: int, _: None, folder: pathlib.Path
) -> dict[str, Any]:
    began = time.perf_counter()
    found = make(seed)
    return {
        "name": folder.name,
        "command": f"{command_of(GRID, config, seed)} --only={run}-seed{seed}",
        "seed": seed,
        **found,
        "seconds": time.perf_counter() - began,
        "machine": machine.environment()["machine"],
        "commit": machine.commit(),
        "finished": time.strftime("%Y-%m-%d"),
    }


def _data(config: MixedConfig, count: int, seed: int) -> tuple[Instances, Instances]:
    train, test = (
        drawn(seed, config.instances, number, config.noise, split)
        for number, split in ((count, _TRAIN), (config.test, _TEST))
    )
    return train, test


def _arms(config: MixedConfig, count: int, seed: int) -> dict[str, Any]:
    """Trains all arms on N examples."""
    train, test = _data(config, count, seed)
    alone = tested(learn(config, None, train, seed), test)
    found: dict[str, Any] = {"none": {"student": _judged(alone, test)}}
    # What a student may learn at most: the truth of its training examples.
    told = tested(learn(config, train.probs, train, seed), test)
    found["truth"] = {"student": _judged(told, test)}
    for arm in ARMS:
        taught = teach(config, terms_of(config, arm), train, test, seed)
        student = tested(learn(config, taught.said, train, seed), test)
        found[arm] = {
            "teacher": {
                **judging.against_truth(taught.said, train),
                **{
                    f"test_{name}": values
                    for name, values in judging.on_labels(taught.tested, test).items()
                },
            },
            "student": _judged(student, test),
        }
        if arm != "cross-fitted":
            found[arm]["smoothness"] = judging.smoothness(taught.networks, train)
        print(
            f"  {arm}: TV {judging.means(found[arm]['teacher'])['tv']:.4f}", flush=True
        )
    return {
        "stage": "arms",
        "examples": count,
        "bayes": judging.bayes(test),
        "arms": found,
    }


def _judged(probs: Any, test: Instances) -> dict[str, list[float]]:
    return {**judging.on_labels(probs, test), **judging.against_truth(probs, test)}


def _checkpoints(config: MixedConfig, seed: int) -> dict[str, Any]:
    """Students of a teacher's checkpoints (Figure 2.1)."""
    train, test = _data(config, config.sweep_examples, seed)
    found: dict[str, list[Mapping[str, float]]] = {}
    for arm in ("standard", "soteacher"):
        taught = teach(config, terms_of(config, arm), train, test, seed)
        found[arm] = [
            {
                **judging.means(judging.against_truth(said, train)),
                "teacher_accuracy": judging.means(judging.on_labels(shown, test))[
                    "accuracy"
                ],
                **judging.means(
                    judging.on_labels(
                        tested(learn(config, said, train, seed), test), test
                    )
                ),
            }
            for said, shown in taught.checkpoints
        ]
    return {"stage": "checkpoints", "examples": config.sweep_examples, "curves": found}


def _sweep(config: MixedConfig, seed: int) -> dict[str, Any]:
    """Weights and schedules (Figure 2.2)."""
    train, test = _data(config, config.sweep_examples, seed)
    cells: dict[str, list[tuple[Any, Terms]]] = {
        "lipschitz": [(w, Terms(lipschitz=w)) for w in (0.0, *config.sweep_lipschitz)],
        "consistency": [
            (w, Terms(consistency=w)) for w in (0.0, *config.sweep_consistency)
        ],
        "ramp": [(r, Terms(consistency=config.consistency, ramp=r)) for r in _RAMPS],
    }
    found: dict[str, list[dict[str, Any]]] = {}
    for name, own in cells.items():
        found[name] = []
        for value, terms in own:
            taught = teach(config, terms, train, test, seed)
            student = tested(learn(config, taught.said, train, seed), test)
            found[name].append(
                {
                    "value": value,
                    "tv": judging.against_truth(taught.said, train)["tv"],
                    "teacher": judging.on_labels(taught.tested, test)["accuracy"],
                    "student": judging.on_labels(student, test)["accuracy"],
                    "student_nll": judging.on_labels(student, test)["nll"],
                }
            )
    return {"stage": "sweep", "examples": config.sweep_examples, "sweep": found}


def _noise(config: MixedConfig, seed: int) -> dict[str, Any]:
    """Errors beside what Theorem 3 bounds them by, at several variances of patches."""
    found: list[dict[str, Any]] = []
    for noise in config.sweep_noise:
        own = dataclasses.replace(config, noise=noise)
        train, test = _data(own, config.sweep_examples, seed)
        for arm in ("standard", "soteacher"):
            taught = teach(own, terms_of(own, arm), train, test, seed)
            found.append(
                {
                    "noise": noise,
                    "arm": arm,
                    "variance": judging.variances(train),
                    **judging.smoothness(taught.networks, train),
                    **judging.against_truth(taught.said, train),
                }
            )
    return {"stage": "noise", "examples": config.sweep_examples, "noise": found}


def _lemmas(config: MixedConfig, seed: int) -> dict[str, Any]:
    del seed
    return {"stage": "lemmas", **lemmas.curves(config.noise)}
