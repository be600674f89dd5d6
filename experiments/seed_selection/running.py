"""The runs of the study, and their rows."""

from __future__ import annotations

import dataclasses
import functools
import pathlib
import time
from typing import Any

import numpy as np
import sklearn.metrics
import tensorflow as tf

from experiments.kit import machine
from experiments.kit.grids import command_of
from experiments.kit.run_list import Run
from experiments.kit.seed_procedure import (
    SeedData,
    packed,
    read_split,
    scores,
    supervision_of,
)
from experiments.seed_selection.config import GRID, PROBES, SelectionConfig
from rlm_tf.labelling import WordList, random_flip, select_confident
from rlm_tf.labelling.word_list import PADDING, UNKNOWN
from rlm_tf.layers import WordDeletion
from rlm_tf.models import TextClassifier
from rlm_tf.models.text_classifiers.stages import log_probs_of

NEEDS = ("name", "set", "probe", "seed", "noise", "auroc", "follows")
# Whose chosen settings all probes have.
_ARM = "standard"
FRACTIONS = tuple(round(0.1 * tenth, 1) for tenth in range(1, 11))


def runs_of(config: SelectionConfig, seeds: list[int]) -> list[Run]:
    """Returns a run for each set, probe and seed."""
    found = []
    common = {**dataclasses.asdict(config), **config.training(_ARM)._asdict()}
    for seed in seeds:
        for name in config.sets:
            # One split serves all probes.
            data = functools.cache(functools.partial(read_split, name, config, seed))
            for probe in config.probes:
                chosen = {"sets": name, "probes": probe}
                found.append(
                    Run(
                        f"{name}-{probe}-seed{seed}",
                        {**common, **chosen, "seed": seed},
                        data,
                        functools.partial(_row, config, name, probe, seed),
                        NEEDS,
                    )
                )
    return found


def _row(
    config: SelectionConfig,
    name: str,
    probe: str,
    seed: int,
    data: SeedData,
    folder: pathlib.Path,
) -> dict[str, Any]:
    began = time.perf_counter()
    return {
        "name": folder.name,
        "command": command_of(GRID, config, seed, sets=name, probes=probe),
        "set": name,
        "probe": probe,
        "seed": seed,
        "encoder": config.encoder,
        **_judged(config, PROBES[probe], data, seed),
        "seconds": time.perf_counter() - began,
        "machine": machine.environment()["machine"],
        "commit": machine.commit(),
        "finished": time.strftime("%Y-%m-%d"),
    }


def _judged(
    config: SelectionConfig, kind: dict[str, Any], data: SeedData, seed: int
) -> dict[str, Any]:
    rows = np.flatnonzero(data.pool)
    truth = data.documents.labels[rows]
    labels = data.labels["published"][rows]
    if kind.get("flip"):
        labels = random_flip(labels, truth, seed=seed)
    tokens, places = data.tokens[rows], data.places["published"][rows]
    deletion = _deletion(kind, data)
    how = config.training(_ARM)
    own_how = how._replace(
        **{name: kind[name] for name in ("epochs", "dropout") if name in kind}
    )
    options = {
        "select": "all",
        "iterations": 0,
        "least_steps": 0 if "epochs" in kind else config.least_steps,
    }
    outcome = supervision_of(
        config, data, seed, training=own_how, deletion=deletion, **options
    ).fit(tokens, labels, places=places)
    known = np.flatnonzero(labels >= 0)
    own = labels[known]
    asked = tokens[known]
    if kind.get("corrupted") and deletion is not None:
        asked = _left(asked, places[known], deletion, seed)
    log_probs = log_probs_of(outcome.model, asked, passes=kind.get("passes", 1))
    # Odds: of a probe that is sure of most, probabilities are alike.
    mine = log_probs[np.arange(len(known)), own]
    sure = mine - np.log(np.maximum(-np.expm1(mine), 1e-300))
    wrong = own != truth[known]
    noise = []
    for fraction in FRACTIONS:
        chosen = select_confident(sure, own, fraction=fraction)
        noise.append(float(wrong[chosen].mean()))
    half = np.full(len(labels), -1)
    chosen = select_confident(sure, own, fraction=config.fraction)
    half[known[chosen]] = own[chosen]
    options["least_steps"] = config.least_steps
    trained = supervision_of(config, data, 100 + seed, training=how, **options).fit(
        tokens, half
    )
    said = np.full(len(data.pool), -1)
    said[rows] = trained.probs.argmax(axis=1)
    judged = data.judged
    return {
        "labelled": len(known),
        "noise": noise,
        "auroc": float(sklearn.metrics.roc_auc_score(~wrong, sure)),
        **follows(outcome.model, data, seed),
        # By document, whether its label is wrong and whether it is in the half.
        "wrong": packed(wrong),
        "chosen": packed(chosen),
        "half": scores(data.documents.labels[judged], said[judged]),
        "right": packed(said[judged] == data.documents.labels[judged]),
    }


def _deletion(kind: dict[str, Any], data: SeedData) -> dict[str, Any] | None:
    options = kind.get("deletion")
    if options is None:
        return None
    ratio = data.ratio if options["ratio"] is True else options["ratio"]
    return {**options, "ratio": ratio}


def _left(
    tokens: np.ndarray, places: np.ndarray, deletion: dict[str, Any], seed: int
) -> np.ndarray:
    """Returns what deletion leaves of documents."""
    transform = WordDeletion(places=places, **{"seed": seed, **deletion})
    ids = tf.range(len(tokens))
    return np.asarray(transform.without(tf.constant(tokens), ids, 0)[0])


def follows(model: TextClassifier, data: SeedData, seed: int) -> dict[str, Any]:
    """Returns how often a prediction is the class of a seed that is put in.

    Into held-out documents without a seed one of another class is put, at a place; both
    are drawn by the split alone, so that all probes of it are asked the same. A word of
    the document, put there once more, says how often it would have been so anyway.

    Returns:
        `follows`, `follows_anyway`, shares of documents; `followed`, of each document.
    """
    rng = np.random.default_rng(seed)
    rule, words = data.documents.rule(), data.reader.words
    assert isinstance(words, WordList)
    out = np.flatnonzero(data.held_out)
    texts = [data.documents.texts[row] for row in out]
    rows = out[rule.match(texts).hits.getnnz(axis=1) == 0]
    known = {
        seed.text: (seed.class_index, words.ids_of(seed.text))
        for seed in rule.seeds
        if seed.tokens and not seed.is_prefix
    }
    names = [*known]
    changed: list[np.ndarray] = []
    neither: list[np.ndarray] = []
    wanted = []
    for row in rows.tolist():
        others = [n for n in names if known[n][0] != data.documents.labels[row]]
        index, ids = known[others[rng.integers(len(others))]]
        length = data.tokens.shape[1]
        # So that what is put in is read.
        own = [t for t in data.tokens[row].tolist() if t != PADDING]
        own = own[: length - len(ids)]
        at = int(rng.integers(len(own) + 1))
        mine = own or [UNKNOWN]
        drawn = [mine[rng.integers(len(mine))] for _ in ids]
        for put, into in ((ids, changed), (drawn, neither)):
            new = [*own[:at], *put, *own[at:]]
            into.append(np.pad(new, (0, length - len(new)), constant_values=PADDING))
        wanted.append(index)
    if not changed:
        return {"follows": float("nan"), "follows_anyway": float("nan")}
    found, anyway = (
        log_probs_of(model, np.array(tokens, np.int32)).argmax(axis=1) == wanted
        for tokens in (changed, neither)
    )
    return {
        "follows": float(np.mean(found)),
        "follows_anyway": float(np.mean(anyway)),
        "followed": packed(found),
    }
