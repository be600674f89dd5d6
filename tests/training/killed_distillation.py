"""Runs of teachers and students that `kill_runs` kills and resumes."""

from __future__ import annotations

import pathlib
from typing import Any

import keras
import numpy as np

from rlm_tf.data import ImageBatches, LabelledImages
from rlm_tf.distillation import KD, ContrastiveRepresentation
from rlm_tf.models import Distillation, StudentOrientedTeacher
from rlm_tf.training import (
    CorrectnessHistory,
    MetricsLog,
    ResumableBatches,
    SaveAnchors,
    TeacherSchedule,
    TemporalEnsemble,
)
from tests.training.toy import train


def _images() -> ResumableBatches:
    rng = np.random.default_rng(6)
    data = LabelledImages(
        rng.integers(0, 256, [12, 3, 3, 1], np.uint8),
        (np.arange(12) % 3).astype(np.int32),
        ("a", "b", "c"),
    )
    return ResumableBatches(ImageBatches(data, 4, seed=1, shift=1))


def _network(seed: int) -> keras.Model:
    start = keras.initializers.GlorotUniform(seed)
    return keras.Sequential(
        [
            keras.Input([3, 3, 1]),
            keras.layers.Flatten(),
            keras.layers.Dense(5, "relu", kernel_initializer=start, name="hidden"),
            keras.layers.Dropout(0.3, seed=seed),
            keras.layers.Dense(3, kernel_initializer=start),
        ]
    )


def teacher(folder: pathlib.Path, **options: Any) -> dict[str, Any]:
    """Trains a teacher whose predictions are in files, and what it was right about."""
    folder.mkdir(parents=True, exist_ok=True)
    batches = _images()
    ensemble = TemporalEnsemble(12, 3, path=folder / "store")
    model = StudentOrientedTeacher(
        _network(1),
        lipschitz=0.01,
        consistency=2.0,
        epochs=3,
        ensemble=ensemble,
        correctness_ranking=0.5,
        correctness=CorrectnessHistory(12),
    )
    found = train(
        folder,
        model=model,
        optimizer=keras.optimizers.SGD(0.1, momentum=0.9),
        batches=batches,
        valid=batches.source.in_order(),
        epochs=3,
        callbacks=[
            SaveAnchors(folder / "anchors", 1, model=model.model),
            MetricsLog(folder / "metrics.jsonl", every_steps=2),
        ],
        **options,
    )
    # Whose files they are is drawn; what they hold is not.
    found["arrays"].pop("ensemble/_place")
    found["arrays"]["means"] = ensemble.targets(np.arange(12)).means.numpy()
    return found


def student(folder: pathlib.Path, **options: Any) -> dict[str, Any]:
    """Trains a student by memories, on one stage of its teacher after the other."""
    folder.mkdir(parents=True, exist_ok=True)
    # Of the projections.
    keras.utils.set_random_seed(8)
    batches, guide = _images(), _network(1)
    anchors = []
    for stage in range(3):
        anchors.append(folder / f"anchor-{stage}.weights.h5")
        _network(2 + stage).save_weights(anchors[-1])
    labels = batches.source.labels
    contrast = ContrastiveRepresentation(
        "hidden", "hidden", num_examples=12, labels=labels, width=4, negatives=3
    )
    return train(
        folder,
        model=Distillation(guide, _network(9), [KD(2.0), (contrast, 0.5)]),
        optimizer=keras.optimizers.SGD(0.1, momentum=0.9),
        batches=batches,
        valid=batches.source.in_order(),
        epochs=3,
        callbacks=[
            TeacherSchedule(guide, anchors, 3),
            MetricsLog(folder / "metrics.jsonl", every_steps=2),
        ],
        **options,
    )
