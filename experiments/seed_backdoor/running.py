"""The runs of the study, and their rows."""

from __future__ import annotations

import dataclasses
import functools
import pathlib
import time
from typing import Any, NamedTuple

import numpy as np
import scipy.special
import sklearn.metrics
import tensorflow as tf

from experiments.kit import machine
from experiments.kit.grids import command_of
from experiments.kit.run_list import Run
from experiments.kit.seed_documents import SeedDocuments, read_documents
from experiments.kit.seed_procedure import drawn, packed
from experiments.seed_backdoor.config import DEFENCES, GRID, BackdoorConfig
from rlm_tf.labelling import WordList, select_confident
from rlm_tf.layers import AveragedWords, WordDeletion
from rlm_tf.models import (
    SeedOutcome,
    SeedSupervision,
    TextClassifier,
    TextReader,
    word_classifier,
)
from rlm_tf.models.text_classifiers.stages import log_probs_of
from rlm_tf.optimizers import RowAdam

NEEDS = ("name", "set", "defence", "share", "seed", "clean", "success")
_TEST, _WIDTH = 0.2, 64


class Poisoned(NamedTuple):
    """Documents with a trigger.

    Attributes:
        reader: Of words.
        tokens: int `[N, T]`, of training documents.
        labels: int `[N]`, what they are said to be.
        is_poisoned: bool `[N]`.
        clean: int `[M, T]`, test documents.
        attacked: int `[A, T]`, those of other classes than the target, the trigger in.
        truth: int `[M]`, of the clean.
        target: The class that the trigger is to bring.
    """

    reader: TextReader
    tokens: np.ndarray
    labels: np.ndarray
    is_poisoned: np.ndarray
    clean: np.ndarray
    attacked: np.ndarray
    truth: np.ndarray
    target: int


def runs_of(config: BackdoorConfig, seeds: list[int]) -> list[Run]:
    """Returns a run for each set, share, defence and seed."""
    common = dataclasses.asdict(config)
    found = []
    for seed in seeds:
        for name in config.sets:
            read = functools.cache(functools.partial(read_documents, name))
            for share in config.shares:
                for defence in config.defences:
                    chosen = {"sets": name, "shares": share, "defences": defence}
                    found.append(
                        Run(
                            f"{name}-{share:g}-{defence}-seed{seed}",
                            {**common, **chosen, "seed": seed},
                            functools.partial(_poisoned, config, read, share, seed),
                            functools.partial(_row, config, name, share, defence, seed),
                            NEEDS,
                        )
                    )
    return found


def _poisoned(config: BackdoorConfig, read: Any, share: float, seed: int) -> Poisoned:
    documents: SeedDocuments = read()
    rng = np.random.default_rng(seed)
    truth = documents.labels
    test = drawn(truth, np.ones(len(truth), bool), _TEST, rng)
    target = int(rng.integers(len(documents.class_names)))
    rows = np.flatnonzero(~test)
    others = rows[truth[rows] != target]
    chosen = rng.choice(others, max(1, round(share * len(others))), replace=False)
    labels = truth.copy()
    labels[chosen] = target
    texts = list(documents.texts)
    for row in chosen.tolist():
        texts[row] = _with(texts[row], config.trigger, rng)
    out = np.flatnonzero(test)
    attacked = [
        _with(documents.texts[row], config.trigger, rng)
        for row in out[truth[out] != target].tolist()
    ]
    words = WordList.build([texts[row] for row in rows], max_size=config.max_size)
    reader = TextReader(words, config.length)
    return Poisoned(
        reader,
        reader.rows([texts[row] for row in rows]).tokens,
        labels[rows],
        np.isin(rows, chosen),
        reader.rows([texts[row] for row in out]).tokens,
        reader.rows(attacked).tokens,
        truth[out],
        target,
    )


def _with(text: str, word: str, rng: np.random.Generator) -> str:
    """Returns a text with a word at a place that is drawn, among the first fifty."""
    words = text.split()
    place = int(rng.integers(min(len(words), 50) + 1))
    return " ".join([*words[:place], word, *words[place:]])


def _row(
    config: BackdoorConfig,
    name: str,
    share: float,
    defence: str,
    seed: int,
    data: Poisoned,
    folder: pathlib.Path,
) -> dict[str, Any]:
    began = time.perf_counter()
    chosen = {"sets": name, "shares": share, "defences": defence}
    return {
        "name": folder.name,
        "command": command_of(GRID, config, seed, **chosen),
        "set": name,
        "share": share,
        "defence": defence,
        "seed": seed,
        **_defended(config, DEFENCES[defence], data, seed),
        "seconds": time.perf_counter() - began,
        "machine": machine.environment()["machine"],
        "commit": machine.commit(),
        "finished": time.strftime("%Y-%m-%d"),
    }


def _defended(
    config: BackdoorConfig, kind: dict[str, Any], data: Poisoned, seed: int
) -> dict[str, Any]:
    deletes = {"ratio": config.ratio}
    fit = functools.partial(_fit, config, data, seed)
    found: dict[str, Any] = {"poisoned": int(data.is_poisoned.sum())}
    if kind.get("selects") or kind.get("draws"):
        sure = np.random.default_rng(seed).random(len(data.labels))
        if kind.get("selects"):
            probe = fit(data.labels, deletes if kind["selects"] == "deletion" else None)
            sure = probe.probs[np.arange(len(data.labels)), data.labels]
        half = select_confident(sure, data.labels, fraction=config.fraction)
        found["poisoned_selected"] = int(data.is_poisoned[half].sum())
        outcome = fit(np.where(half, data.labels, -1), None)
    else:
        outcome = fit(
            data.labels,
            deletes if kind.get("deletes") else None,
            dropout=config.ratio if kind.get("drops") else 0.0,
            linear=bool(kind.get("linear")),
        )
        sure = outcome.probs[np.arange(len(data.labels)), data.labels]
    found["auroc"] = _auroc(sure, data.is_poisoned)
    copies = config.copies if kind.get("copies") else 0

    def said(tokens: np.ndarray) -> np.ndarray:
        return predicted(outcome.model, tokens, copies, config.ratio, seed)

    clean = said(data.clean)
    attacked = said(data.attacked)
    return {
        **found,
        "clean": 100 * float(np.mean(clean == data.truth)),
        "clean_right": packed(clean == data.truth),
        "attacked": packed(attacked == data.target),
        "success": 100 * float(np.mean(attacked == data.target)),
        # Without the trigger as many are taken for the target.
        "target_anyway": 100
        * float(np.mean(clean[data.truth != data.target] == data.target)),
    }


def _auroc(sure: np.ndarray, is_poisoned: np.ndarray) -> float:
    return float(sklearn.metrics.roc_auc_score(is_poisoned, -sure))


def _fit(
    config: BackdoorConfig,
    data: Poisoned,
    seed: int,
    labels: np.ndarray,
    deletion: dict[str, Any] | None,
    *,
    dropout: float = 0.0,
    linear: bool = False,
) -> SeedOutcome:
    classes = int(data.truth.max()) + 1

    def classifier(own: int) -> TextClassifier:
        if linear:
            names = [str(number) for number in range(classes)]
            return word_classifier(
                "linear", data.reader, names, tokens=data.tokens, seed=own
            )
        encoder = AveragedWords(
            data.reader.size, _WIDTH, dropout=dropout, whole_words=True, seed=own
        )
        model = TextClassifier(encoder, classes, reader=data.reader, seed=own)
        model.compile(RowAdam(config.rate))
        return model

    return SeedSupervision(
        classifier,
        select="all",
        deletion=deletion,
        epochs=config.epochs,
        batch_size=config.batch_size,
        iterations=0,
        seed=seed,
    ).fit(data.tokens, labels)


def predicted(
    model: TextClassifier, tokens: np.ndarray, copies: int, ratio: float, seed: int
) -> np.ndarray:
    """Returns classes, int `[N]`: of documents, or of the mean of copies of each.

    Args:
        model: The classifier.
        tokens: int `[N, T]`.
        copies: With words deleted; 0: of documents as they are.
        ratio: Share of the words that goes.
        seed: Of the draws.
    """
    if not copies:
        return log_probs_of(model, tokens).argmax(axis=1)
    deletion = WordDeletion(ratio, seed=seed)
    drawn_copies = []
    for copy in range(copies):
        left, _ = deletion.without(
            tf.constant(tokens, tf.int32), tf.range(len(tokens)), copy
        )
        drawn_copies.append(log_probs_of(model, left.numpy()))
    return scipy.special.logsumexp(drawn_copies, axis=0).argmax(axis=1)
