"""The lists of runs behind the tables of the study's page."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from experiments.kit.recurrent_config import RunConfig

if TYPE_CHECKING:
    from experiments.kit.rows import Rows

# Where the rows of trials are, unless `--results_dir` has some.
_ROWS = pathlib.Path(__file__).parent

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
# The same three trials for every arm.
TRIALS: dict[str, dict[str, Any]] = {
    "low-2": {**_LOW, "learning_rate": 0.002},
    "high-2": {**_HIGH, "learning_rate": 0.002},
    "high-4": {**_HIGH, "learning_rate": 0.004},
}
_MOGRIFIER = {"rounds": 5, "rank": 40}
ARMS: dict[str, dict[str, Any]] = {
    "lstm": {},
    "mogrifier": _MOGRIFIER,
    "rlstm": {"cell": "rlstm"},
}


def trials(seeds: list[int], rows: Rows | None = None) -> dict[str, RunConfig]:
    """Every arm under every trial; no rows are needed."""
    return {
        f"{arm}-{trial}-seed{seed}": dataclasses.replace(
            PTB, **settings, **TRIALS[trial], seed=seed
        )
        for trial in TRIALS
        for arm, settings in ARMS.items()
        for seed in seeds
    }


# Rows of Table 2.3 and Figure 2.3 that are no arms, with the arm whose chosen
# trial it trains with.
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "full-rank": ("mogrifier", {"rounds": 5, "rank": 0}),
    "no-zigzag": ("mogrifier", {**_MOGRIFIER, "condition": "original"}),
    "mlstm": ("lstm", {"cell": "mlstm"}),
    "rounds-2": ("mogrifier", {**_MOGRIFIER, "rounds": 2}),
    "rounds-4": ("mogrifier", {**_MOGRIFIER, "rounds": 4}),
    "rounds-6": ("mogrifier", {**_MOGRIFIER, "rounds": 6}),
    "rank-3": ("mogrifier", {**_MOGRIFIER, "rank": 3}),
    "4-samples": ("mogrifier", {**_MOGRIFIER, "dropout_samples": 4}),
    "imm": ("mogrifier", {**_MOGRIFIER, "coefficient": 0.2}),
    "mogrifier-rlstm": ("rlstm", {**_MOGRIFIER, "cell": "rlstm"}),
    "scale-only": ("mogrifier", {"rounds": 5, "condition": "none"}),
    "untied-lstm": ("lstm", {"tied": False}),
    "untied-mogrifier": ("mogrifier", {**_MOGRIFIER, "tied": False}),
    "chrono": ("mogrifier", {**_MOGRIFIER, "longest": 33.1}),
    "radam": ("mogrifier", {**_MOGRIFIER, "optimizer": "radam"}),
}


def cells(seeds: list[int], rows: Rows | None = None) -> dict[str, RunConfig]:
    """Every arm with its chosen trial."""
    return {
        f"{arm}-seed{seed}": dataclasses.replace(
            PTB, **settings, **TRIALS[chosen_trial(arm, rows)], seed=seed
        )
        for arm, settings in ARMS.items()
        for seed in seeds
    }


def variants(seeds: list[int], rows: Rows | None = None) -> dict[str, RunConfig]:
    """The other rows of Table 2.3, more and fewer rounds, and single changes."""
    return {
        f"{name}-seed{seed}": dataclasses.replace(
            PTB, **changes, **TRIALS[chosen_trial(arm, rows)], seed=seed
        )
        for name, (arm, changes) in VARIANTS.items()
        for seed in seeds
    }


def combined(seeds: list[int], rows: Rows | None = None) -> dict[str, RunConfig]:
    """The LSTM alone and everything together, about an hour of one core each."""
    lstm = TRIALS[chosen_trial("lstm", rows)]
    mogrifier = TRIALS[chosen_trial("mogrifier", rows)]
    runs = {
        "plain-lstm": {**lstm, "averaging": "none", "epochs": 46},
        "everything": {**_MOGRIFIER, **mogrifier, "coefficient": 0.2, "epochs": 32},
    }
    return {
        f"{name}-seed{seed}": dataclasses.replace(PTB, **settings, seed=seed)
        for name, settings in runs.items()
        for seed in seeds
    }


def further(seeds: list[int], rows: Rows | None = None) -> dict[str, RunConfig]:
    """Other texts, as many tokens of them or more, and an RLSTM in the LSTM's time."""
    texts: dict[str, dict[str, Any]] = {
        "wikitext-2": {"corpus": "wikitext-2", "fraction": 0.111, "budget": 5_000_000},
        "characters": {
            "corpus": "ptb-char",
            "fraction": 0.1,
            "budget": 1_000_000,
            "batch_size": 32,
            "window": 100,
            "input_dropout": 0.1,
            "layer_dropout": 0.1,
            "state_dropout": 0.1,
            "output_dropout": 0.2,
        },
    }
    runs = {
        f"{text}-{arm}": {**ARMS[arm], **TRIALS[chosen_trial(arm, rows)], **changes}
        for text, changes in texts.items()
        for arm in ("lstm", "mogrifier")
    }
    runs["rlstm-in-the-time-of-lstm"] = {
        **ARMS["rlstm"],
        **TRIALS[chosen_trial("rlstm", rows)],
        "epochs": 14,
    }
    return {
        f"{name}-seed{seed}": dataclasses.replace(PTB, **settings, seed=seed)
        for name, settings in runs.items()
        for seed in seeds
    }


def chosen_trial(arm: str, rows: Rows | None = None) -> str:
    """Returns the trial of an arm with the lowest validation perplexity.

    Args:
        arm: One of `ARMS`.
        rows: Those of `--results_dir`; if it has no trials, the repository's.

    Raises:
        ValueError: If the row of a trial is missing.
    """
    # Not earlier: it imports TensorFlow.
    from experiments.kit.rows import Rows

    found = {}
    trials = Rows(rows.folder if rows else _ROWS, "trials")
    if not trials.names():
        trials = Rows(_ROWS, "trials")
    for trial in TRIALS:
        name = f"{arm}-{trial}-seed1"
        if name not in trials:
            raise ValueError(
                f"{trials.place(name)} is missing, which the choice of a trial needs: "
                f"first run --study=trials with --results_dir={trials.folder}."
            )
        row = trials.read(name, ("perplexity.valid",))
        found[trial] = row["perplexity"]["valid"]
    return min(found, key=lambda trial: found[trial])


Study = Callable[[list[int], "Rows | None"], dict[str, RunConfig]]
STUDIES: dict[str, Study] = {
    "trials": trials,
    "cells": cells,
    "variants": variants,
    "combined": combined,
    "further": further,
}
