"""The runs of the study, and their rows."""

from __future__ import annotations

import dataclasses
import functools
import pathlib
import time
from typing import Any

import numpy as np
import scipy.special
from sklearn.linear_model import LogisticRegression

from experiments.kit import machine
from experiments.kit.grids import command_of
from experiments.kit.run_list import Run
from experiments.kit.seed_config import strength_of
from experiments.kit.seed_procedure import (
    SeedData,
    deletion_of,
    packed,
    read_split,
    supervision_of,
    tfidf,
)
from experiments.seed_estimates.config import GRID, EstimatesConfig
from rlm_tf.evaluation import expected_calibration_error, fit_temperature
from rlm_tf.labelling import (
    accuracy_from_labels,
    binomial_interval,
    choose_to_label,
    confident_joint,
    seed_agreement,
)
from rlm_tf.models import SeedOutcome
from rlm_tf.models.text_classifiers.stages import log_probs_of

_MOST_EPOCHS = 100
NEEDS = ("name", "stage", "set", "seed")
# Whose strength was chosen.
_PEER = "linear-sklearn"


def runs_of(config: EstimatesConfig, seeds: list[int]) -> list[Run]:
    """Returns a run for each stage, set and seed."""
    makers = {"without": _without, "intervals": _intervals, "worth": _worth}
    common = dataclasses.asdict(config)
    common.pop("stages")
    common.pop("worth_sets")
    common["strength"] = strength_of(_PEER)
    found = []
    for seed in seeds:
        # Read once for all stages.
        splits = {
            name: functools.cache(functools.partial(read_split, name, config, seed))
            for name in {*config.sets, *config.worth_sets}
        }
        for stage in config.stages:
            sets = config.worth_sets if stage == "worth" else config.sets
            for name in sets:
                found.append(
                    Run(
                        f"{stage}-{name}-seed{seed}",
                        {**common, "stage": stage, "sets": name, "seed": seed},
                        splits[name],
                        functools.partial(
                            _row, config, stage, name, seed, makers[stage]
                        ),
                        NEEDS,
                    )
                )
    return found


def _row(
    config: EstimatesConfig,
    stage: str,
    name: str,
    seed: int,
    make: Any,
    data: SeedData,
    folder: pathlib.Path,
) -> dict[str, Any]:
    began = time.perf_counter()
    lists = {"worth_sets": name} if stage == "worth" else {"sets": name}
    if config.ratio:
        data = data._replace(ratio=config.ratio)
    return {
        "name": folder.name,
        "command": command_of(GRID, config, seed, stages=stage, **lists),
        "stage": stage,
        "set": name,
        "seed": seed,
        **make(config, data, seed),
        "seconds": time.perf_counter() - began,
        "machine": machine.environment()["machine"],
        "commit": machine.commit(),
        "finished": time.strftime("%Y-%m-%d"),
    }


# === Without true labels ===


def _without(config: EstimatesConfig, data: SeedData, seed: int) -> dict[str, Any]:
    rows = np.flatnonzero(data.pool)
    tokens, labels = data.tokens[rows], data.labels["words"][rows]
    known = labels >= 0
    found: dict[str, Any] = {}
    for name, kind in (("plain", None), ("seeds", "seeds"), ("random", "random")):
        probs = supervision_of(
            config,
            data,
            seed,
            select="all",
            iterations=0,
            epochs=_epochs(config, labels),
        ).cross_fitted(
            tokens,
            labels,
            folds=config.folds,
            deletion=deletion_of(kind, data.ratio),
            places=data.places["words"][rows],
        )
        joint = confident_joint(labels[known], probs[known].astype(np.float64))
        found[name] = 1 - joint.noise_rate
        found[f"{name}_agrees"] = float(
            np.mean(probs[known].argmax(axis=1) == labels[known])
        )
    rule = data.documents.rule()
    texts = [data.documents.texts[row] for row in rows]
    agreement = seed_agreement(rule, rule.match(texts))
    truth = data.documents.labels[rows]
    return {
        "truth": float(np.mean(labels[known] == truth[known])),
        "estimates": found,
        "meeting": agreement._asdict(),
        "labelled": int(known.sum()),
    }


def _epochs(config: EstimatesConfig, labels: np.ndarray) -> int:
    """Returns passes over labels, of few more, as `rlm_tf seed_classify` has it."""
    steps = -(-int((labels >= 0).sum()) // config.batch_size)
    return min(max(config.epochs, -(-config.least_steps // steps)), _MOST_EPOCHS)


# === Intervals ===


def _ours(
    config: EstimatesConfig,
    data: SeedData,
    seed: int,
    labels: np.ndarray,
    weights: np.ndarray | None = None,
    deletion: str | None = "random",
) -> SeedOutcome:
    """Returns our procedure on labels of the pool."""
    rows = np.flatnonzero(data.pool)
    return supervision_of(
        config,
        data,
        seed,
        select="all",
        deletion=deletion_of(deletion, data.ratio),
        epochs=_epochs(config, labels),
        self_epochs=config.self_epochs,
    ).fit(
        data.tokens[rows],
        labels,
        places=data.places["words"][rows],
        weights=weights,
    )


def _intervals(config: EstimatesConfig, data: SeedData, seed: int) -> dict[str, Any]:
    """Returns coverage and width, by the accuracy that a classifier has.

    Documents that are right or wrong are left out at random until the accuracy is as
    wanted; what confidence says of the others stays.
    """
    rows = np.flatnonzero(data.pool)
    truth = data.documents.labels[rows]
    probs = _ours(config, data, seed, data.labels["words"][rows]).probs
    right, sure = probs.argmax(axis=1) == truth, probs.max(axis=1)
    logits = np.log(np.maximum(probs.astype(np.float64), 1e-30))
    found = []
    rng = np.random.default_rng(seed)
    for wanted in config.accuracies:
        kept = _of_accuracy(right, wanted, rng)
        # By the true labels of all that are kept: the best that calibration could be.
        fitted = fit_temperature(logits[kept], truth[kept])
        scaled = logits[kept] / max(fitted.temperature, 1e-3)
        calibrated = scipy.special.softmax(scaled, axis=1).max(axis=1)
        for kind, confidence in (
            ("as it is", sure[kept]),
            ("calibrated by all true labels", calibrated),
        ):
            found.append(
                {
                    "accuracy": wanted,
                    "documents": len(kept),
                    "confidence": kind,
                    "temperature": fitted.temperature,
                    **_coverage(config, right[kept], confidence, seed),
                }
            )
    return {
        "accuracy": float(right.mean()),
        "ece": expected_calibration_error(probs.astype(np.float64), truth),
        "intervals": found,
    }


def _of_accuracy(
    right: np.ndarray, wanted: float, rng: np.random.Generator
) -> np.ndarray:
    """Returns rows of which the wanted share is right, as many as there are."""
    good, bad = np.flatnonzero(right), np.flatnonzero(~right)
    number = int(min(len(good) / wanted, len(bad) / (1 - wanted)))
    goods = round(wanted * number)
    return np.concatenate(
        [
            rng.choice(good, min(goods, len(good)), replace=False),
            rng.choice(bad, min(number - goods, len(bad)), replace=False),
        ]
    )


def _coverage(
    config: EstimatesConfig, right: np.ndarray, sure: np.ndarray, seed: int
) -> dict[str, float]:
    """Returns how often intervals hold the truth, and their width.

    Beside those of Clopper and Pearson of simple samples of as many.
    """
    truth = float(right.mean())
    rng = np.random.default_rng(1000 + seed)
    count = min(config.given, len(right))
    covered, widths, simple_covered, simple_widths, values = [], [], [], [], []
    for draw in range(config.draws):
        chosen = choose_to_label(sure, count, seed=draw)
        own = accuracy_from_labels(
            right[chosen.indices], chosen.strata, chosen.stratum_sizes
        )
        covered.append(own.low <= truth <= own.high)
        widths.append(own.high - own.low)
        values.append(own.value)
        hits = int(right[rng.choice(len(right), count, replace=False)].sum())
        low, high = binomial_interval(hits, count)
        simple_covered.append(low <= truth <= high)
        simple_widths.append(high - low)
    return {
        "coverage": float(np.mean(covered)),
        "width": float(np.mean(widths)),
        "simple_coverage": float(np.mean(simple_covered)),
        "simple_width": float(np.mean(simple_widths)),
        "bias": float(np.mean(values) - truth),
    }


# === How many labels seeds are worth ===


def _worth(config: EstimatesConfig, data: SeedData, seed: int) -> dict[str, Any]:
    rows = np.flatnonzero(data.pool)
    truth = data.documents.labels
    by_seeds = data.labels["words"][rows]
    out = np.flatnonzero(data.held_out)

    judged = data.judged[rows]

    def score(outcome: SeedOutcome) -> dict[str, Any]:
        said = log_probs_of(outcome.model, data.tokens[out]).argmax(axis=1)
        right = outcome.rounds[:, judged] == truth[rows][judged]
        return {
            "accuracy": 100 * float(np.mean(said == truth[out])),
            "right": packed(said == truth[out]),
            # Of documents of the pool, before self-training and after.
            "first": 100 * float(right[0].mean()),
            "last": 100 * float(right[-1].mean()),
        }

    rng = np.random.default_rng(seed)
    order = rng.permutation(len(rows))
    texts = tfidf(data)
    found: dict[str, Any] = {"seeds": score(_ours(config, data, seed, by_seeds))}
    cells = []
    for number in config.numbers:
        own = np.full(len(rows), -1)
        own[order[:number]] = truth[rows[order[:number]]]
        cell: dict[str, Any] = {"number": number}
        cell["labels"] = score(_ours(config, data, seed, own, deletion=None))
        cell["labels, deletion"] = score(_ours(config, data, seed, own))
        given = own >= 0
        if len(np.unique(own[given])) > 1:
            model = LogisticRegression(C=strength_of(_PEER), max_iter=500)
            model.fit(texts[rows[given]], own[given])
            said = model.predict(texts[out])
            cell["logistic regression"] = {
                "accuracy": 100 * float(np.mean(said == truth[out])),
                "right": packed(said == truth[out]),
            }
        both = np.where(own >= 0, own, by_seeds)
        for weight in config.weights:
            weights = np.where(own >= 0, weight, 1.0)
            cell[f"both, weight {weight:g}"] = score(
                _ours(config, data, seed, both, weights)
            )
        cells.append(cell)
    return {**found, "cells": cells}
