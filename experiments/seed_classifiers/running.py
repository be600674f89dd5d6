"""The runs of the study, and their rows."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import pathlib
import time
from typing import Any

import numpy as np

from experiments.kit import machine, run_files, seed_procedure
from experiments.kit.grids import command_of
from experiments.kit.run_list import Run
from experiments.kit.seed_procedure import SeedData, packed, read_split, scores
from experiments.seed_classifiers.config import GRID, LISTS, PEERS, ClassifiersConfig
from experiments.seed_classifiers.peers import peer
from rlm_tf.command_line.json_files import write_json

NEEDS = ("name", "set", "arm", "seed", "stage", "judged", "held_out")


def runs_of(config: ClassifiersConfig, seeds: list[int]) -> list[Run]:
    """Returns a run for each set, arm and seed."""
    found = []
    for seed in seeds:
        for name in config.sets:
            # One split serves all arms.
            data = functools.cache(functools.partial(read_split, name, config, seed))
            for own, arm in itertools.product(config.variants(), config.arms):
                given = dataclasses.asdict(own) | {"sets": name, "arms": arm}
                for each in LISTS:
                    given.pop(each)
                settings = {
                    **given,
                    **own.training(arm)._asdict(),
                    "strength": own.strength_of(arm),
                    "seed": seed,
                }
                found.append(
                    Run(
                        _name(own, name, arm, seed),
                        settings,
                        data,
                        functools.partial(_row, own, name, arm, seed, settings),
                        NEEDS,
                    )
                )
    return found


def _name(config: ClassifiersConfig, name: str, arm: str, seed: int) -> str:
    own = f"{name}-{arm}-seed{seed}"
    if config.stage == "tune":
        how = config.training(arm)
        chosen = f"{config.encoder}-e{how.epochs}-r{how.rate:g}-w{how.decay:g}"
        if arm in PEERS:
            chosen = f"C{config.strength_of(arm):g}"
        own = f"tune-{chosen}-{own}"
    if config.stage == "fractions":
        own = f"fraction{config.fraction:g}-{own}"
    if config.stage == "ratios":
        own = f"ratio{config.ratio:g}-{own}"
    if config.stage == "pools":
        own = f"{config.pool}-{own}"
    if config.stage == "tool":
        own = f"tool-w{config.training(arm).decay:g}-{own}"
    return own


def _row(
    config: ClassifiersConfig,
    name: str,
    arm: str,
    seed: int,
    settings: dict[str, Any],
    data: SeedData,
    folder: pathlib.Path,
) -> dict[str, Any]:
    began = time.perf_counter()
    # Whose trainings there are.
    write_json(folder / "config.json", settings)
    found = (
        _peer(arm, data, seed, config.strength_of(arm))
        if arm in PEERS
        else _trained(arm, config, data, seed, folder)
    )
    return {
        "name": folder.name,
        "command": command_of(GRID, config, seed, sets=name, arms=arm),
        "stage": config.stage,
        "set": name,
        "arm": arm,
        "seed": seed,
        **{own: getattr(config, own) for own in ("encoder", *LISTS.values(), "pool")},
        **(
            {"strength": config.strength_of(arm)}
            if arm in PEERS
            else config.training(arm)._asdict()
        ),
        **found,
        "seconds": time.perf_counter() - began,
        "machine": machine.environment()["machine"],
        "commit": machine.commit(),
        "finished": time.strftime("%Y-%m-%d"),
    }


def _trained(
    arm: str, config: ClassifiersConfig, data: SeedData, seed: int, folder: pathlib.Path
) -> dict[str, Any]:
    if config.ratio:
        data = data._replace(ratio=config.ratio)
    outcome, rows = seed_procedure.run_arm(
        arm,
        config,
        data,
        seed,
        folder / run_files.TRAININGS,
        pool=config.pool,
    )
    truth = data.documents.labels
    own = np.full([len(outcome.rounds), len(truth)], -1)
    own[:, rows] = outcome.rounds
    out = np.flatnonzero(data.held_out)
    said = _said(outcome.model, data.tokens[out])
    return {
        "labels": seed_procedure.of_labels(outcome, data, arm),
        "judged": [scores(truth[data.judged], each[data.judged]) for each in own],
        "held_out": scores(truth[out], said),
        "right": packed(own[-1][data.judged] == truth[data.judged]),
        "held_out_right": packed(said == truth[out]),
    }


def _said(model: Any, tokens: np.ndarray) -> np.ndarray:
    from rlm_tf.models.text_classifiers.stages import log_probs_of

    return log_probs_of(model, tokens).argmax(axis=1)


def _peer(arm: str, data: SeedData, seed: int, strength: float) -> dict[str, Any]:
    said = peer(arm, data, seed, strength)
    truth = data.documents.labels
    judged = np.where(said < 0, -1, said)
    return {
        "labels": {},
        "judged": [scores(truth[data.judged], judged[data.judged])],
        "held_out": scores(truth[data.held_out], judged[data.held_out]),
        "right": packed(judged[data.judged] == truth[data.judged]),
        "held_out_right": packed(judged[data.held_out] == truth[data.held_out]),
    }
