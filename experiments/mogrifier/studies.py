"""The lists of runs behind the tables of experiments/README.md, and the presets."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from experiments.mogrifier.config import RunConfig

# About 2.5 million parameters on the first quarter of Penn Treebank, all its words.
PTB = RunConfig(corpus="ptb", fraction=0.25, l2=1e-4)

_LOW = {
    "input_dropout": 0.3,
    "layer_dropout": 0.2,
    "state_dropout": 0.2,
    "output_dropout": 0.4,
}
_HIGH = {
    "input_dropout": 0.5,
    "layer_dropout": 0.3,
    "state_dropout": 0.3,
    "output_dropout": 0.6,
}
# The same four trials for every arm.
TRIALS: dict[str, dict[str, Any]] = {
    "low-2": {**_LOW, "learning_rate": 0.002},
    "low-4": {**_LOW, "learning_rate": 0.004},
    "high-2": {**_HIGH, "learning_rate": 0.002},
    "high-4": {**_HIGH, "learning_rate": 0.004},
}
ARMS: dict[str, dict[str, Any]] = {
    "lstm": {},
    "mogrifier": {"rounds": 5, "rank": 40},
    "rlstm": {"cell": "rlstm"},
}


def trials(seeds: list[int]) -> dict[str, RunConfig]:
    """Every arm under every trial."""
    return {
        f"{arm}-{trial}-seed{seed}": dataclasses.replace(
            PTB, **settings, **TRIALS[trial], seed=seed
        )
        for trial in TRIALS
        for arm, settings in ARMS.items()
        for seed in seeds
    }


Study = Callable[[list[int]], dict[str, RunConfig]]
STUDIES: dict[str, Study] = {"trials": trials}
