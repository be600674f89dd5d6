"""Runs of language teachers and students that `kill_runs` kills and resumes."""

from __future__ import annotations

import pathlib
from typing import Any

import keras
import numpy as np

from rlm_tf.data import PlacedBatches, contiguous_batches
from rlm_tf.distillation import GeneralisedJSD
from rlm_tf.models import (
    LanguageDistillation,
    RecurrentLanguageModel,
    StudentOrientedLanguageTeacher,
)
from rlm_tf.training import MetricsLog, ResumableBatches, TokenEnsemble
from tests.training.toy import train

_TOKENS = np.random.default_rng(5).integers(0, 7, 4 * 3 * 6 - 2)


def teacher(folder: pathlib.Path, **options: Any) -> dict[str, Any]:
    """Trains a teacher; what it said of each token is in files."""
    folder.mkdir(parents=True, exist_ok=True)
    ensemble = TokenEnsemble(len(_TOKENS), 3, path=folder / "store")
    model = StudentOrientedLanguageTeacher(
        _language_model(6, 3), lipschitz=0.01, epochs=3, ensemble=ensemble
    )
    found = _trained(folder, model, PlacedBatches(_batches()), **options)
    # Whose files they are is drawn; what they hold is not.
    found["arrays"].pop("ensemble/_place")
    said = ensemble.targets(np.arange(len(_TOKENS)))
    for name, value in zip(said._fields, said, strict=True):
        found["arrays"][f"said/{name}"] = np.asarray(value)
    return found


def student(folder: pathlib.Path, **options: Any) -> dict[str, Any]:
    """Trains a student on its own texts and others, beside a teacher that runs."""
    model = LanguageDistillation(
        _language_model(6, 4),
        _language_model(5, 3),
        [(GeneralisedJSD(0.5), 0.5)],
        student_weight=0.5,
        on_policy=0.5,
        seed=2,
    )
    return _trained(folder, model, _batches(), **options)


def _language_model(width: int, seed: int) -> RecurrentLanguageModel:
    return RecurrentLanguageModel(7, width, 1, dropout=0.3, seed=seed)


def _batches() -> Any:
    return contiguous_batches(_TOKENS, 4, 3, prefix=0)


def _trained(
    folder: pathlib.Path, model: keras.Model, source: Any, **options: Any
) -> dict[str, Any]:
    return train(
        folder,
        model=model,
        optimizer=keras.optimizers.Adam(0.02),
        batches=ResumableBatches(source),
        epochs=3,
        callbacks=[MetricsLog(folder / "metrics.jsonl", every_steps=2)],
        **options,
    )
