"""Trains a teacher."""

from __future__ import annotations

import pathlib
from typing import Any

import keras
import numpy as np
import scipy.special

from experiments.distill_digits import fitting
from experiments.distill_digits.config import SETS, TEACHERS, DigitsConfig
from experiments.distill_digits.data import Parts
from rlm_tf.file_errors import naming
from rlm_tf.models import StudentOrientedTeacher, count_parameters, folds_of
from rlm_tf.training import (
    CorrectnessHistory,
    KeepBest,
    SaveAnchors,
    TemporalEnsemble,
)

MODEL, ANCHORS = "model.keras", "anchors"
_ANCHORS_EVERY = 10


def train(
    config: DigitsConfig,
    data: Parts,
    arm: str,
    network: str,
    seed: int,
    folder: pathlib.Path,
) -> dict[str, Any]:
    """Trains a teacher, or one a fold, and returns its scores."""
    folds = TEACHERS[arm].get("folds", 1)
    if folds == 1:
        model, curve = _train(config, data, arm, network, seed, folder)
        seconds = curve[-1]["seconds"]
        logits = fitting.logits_of(model, data)
    else:
        fold = folds_of(len(data.labels("train")), folds, seed)
        said, seconds = [], 0.0
        for index in range(folds):
            place = folder / str(index)
            place.mkdir(parents=True, exist_ok=True)
            part = data._replace(train=data.train.part(np.flatnonzero(fold != index)))
            model, curve = _train(config, part, arm, network, seed + index, place)
            said.append(fitting.logits_of(model, data))
            seconds += curve[-1]["seconds"]
        # The mean of the probabilities.
        logits = {
            split: scipy.special.logsumexp(
                [scipy.special.log_softmax(each[split], axis=1) for each in said],
                axis=0,
            )
            for split in said[0]
        }
    return {
        "parameters": folds * count_parameters(model),
        "curve": {
            name: [row.get(name) for row in curve]
            for name in ("cross_entropy", "accuracy", "val_accuracy", "lipschitz")
            if name in curve[-1]
        },
        "seconds": seconds,
        **fitting.scores(logits, data),
    }


def _train(
    config: DigitsConfig,
    data: Parts,
    arm: str,
    network: str,
    seed: int,
    folder: pathlib.Path,
) -> tuple[keras.Model, list[dict[str, Any]]]:
    options = dict(TEACHERS[arm])
    options.pop("folds", None)
    stops = options.pop("stops", False)
    mixing, alpha = options.pop("mixing", ""), options.pop("alpha", 1.0)
    batches = data.batches(config, seed, mixing, alpha)
    model = fitting.network(network, seed, config.data)
    teacher = student_oriented(config, model, options, len(data.labels("train")))
    teacher.compile(fitting.optimizer(config, batches.steps))
    keep = [KeepBest("val_cross_entropy")] if stops else []
    anchors = SaveAnchors(folder / ANCHORS, _ANCHORS_EVERY, model=model)
    curve = fitting.fit(teacher, batches, config, data, folder, keep, [anchors])
    if stops:
        keep[0].best.restore(teacher)
    with naming(folder / MODEL):
        model.save(folder / MODEL)
    return model, curve


def student_oriented(
    config: DigitsConfig, model: keras.Model, options: dict[str, Any], number: int
) -> StudentOrientedTeacher:
    """Returns a network as a teacher, not compiled.

    Args:
        config: The settings.
        model: The network.
        options: Of `StudentOrientedTeacher`, without what remembers.
        number: Examples to remember.
    """
    variant = options.get("variant", "thesis")
    own = {"lipschitz": 0.0, "consistency": 0.0, **options}
    own["lipschitz"] *= config.lipschitz
    if own["consistency"]:
        classes = SETS[config.data].classes
        own["ensemble"] = TemporalEnsemble(number, classes, variant=variant)
    if options.get("correctness_ranking"):
        own["correctness"] = CorrectnessHistory(number, variant=variant)
    return StudentOrientedTeacher(
        model, epochs=config.epochs, l2=config.weight_decay, **own
    )
