"""Trains a student, alone or by a method on a teacher's files."""

from __future__ import annotations

import pathlib
from typing import Any

import keras
import scipy.special

from experiments.distill_digits import fitting
from experiments.distill_digits.config import SOTEACHERS, TEACHERS, DigitsConfig
from experiments.distill_digits.data import Parts
from experiments.distill_digits.teachers import ANCHORS, MODEL
from rlm_tf import load_model
from rlm_tf.distillation import TaughtStrategy, recipe
from rlm_tf.evaluation import fidelity
from rlm_tf.models import (
    CrossFittedTeacher,
    Distillation,
    StudentOrientedTeacher,
    count_parameters,
    folds_of,
)
from rlm_tf.training import TeacherSchedule


def train(
    config: DigitsConfig,
    data: Parts,
    place: pathlib.Path | None,
    method: str,
    network: str,
    seed: int,
    folder: pathlib.Path,
) -> dict[str, Any]:
    """Trains a student, and returns its scores.

    Args:
        config: The settings.
        data: The images.
        place: Folder of its teacher; None: it is alone.
        method: Of `METHODS`.
        network: Its own.
        seed: Of weights and draws.
        folder: Of checkpoints and logs.

    Raises:
        FileNotFoundError: If the teacher is not there.
    """
    student = fitting.network(network, 100 + seed, config.data)
    batches = data.batches(config, seed)
    if place is None:
        alone = StudentOrientedTeacher(
            student,
            lipschitz=0.0,
            consistency=0.0,
            epochs=config.epochs,
            l2=config.weight_decay,
        )
        alone.compile(fitting.optimizer(config, batches.steps))
        fitting.fit(alone, batches, config, data, folder, [], [], is_student=True)
        return _scores(student, data)
    teacher = read_teacher(place, data, seed)
    arm = _arm_of(place)
    chosen = recipe(
        "kd" if method == "rco" else method,
        "soteacher" if arm in SOTEACHERS else "standard",
        labels=data.labels("train"),
        negatives=config.negatives,
        seed=seed,
    )
    if chosen.first_losses:
        # As published, with half of the epochs of that stage in the thesis' 240.
        first = compiled(
            config, teacher, student, chosen.first_losses, 0.0, batches.steps
        )
        epochs = max(config.epochs * chosen.first_epochs // 240, 1)
        first.fit(
            batches.dataset,
            epochs=epochs,
            shuffle=False,
            verbose=0,
            callbacks=[batches.follow_epochs()],
        )
    model = compiled(
        config, teacher, student, chosen.losses, chosen.student_weight, batches.steps
    )
    if any(isinstance(each, TaughtStrategy) for each in model.strategies):
        batches.seek(0)
        model.prepare(batches.dataset, epochs=config.preparing_epochs)
    others = []
    if method == "rco":
        others.append(TeacherSchedule(teacher, place / ANCHORS, config.epochs))
    fitting.fit(model, batches, config, data, folder, [], others, is_student=True)
    return {**_scores(student, data), **_fidelity(teacher, student, data)}


def compiled(
    config: DigitsConfig,
    teacher: Any,
    student: keras.Model,
    losses: Any,
    student_weight: float,
    steps: int,
) -> Distillation:
    """Returns a student with a teacher, compiled; `steps` are those of an epoch."""
    model = Distillation(
        teacher,
        student,
        losses,
        student_weight=student_weight,
        l2=config.weight_decay,
    )
    model.compile(fitting.optimizer(config, steps))
    return model


def read_teacher(place: pathlib.Path, data: Parts, seed: int) -> Any:
    """Returns the teacher of a folder.

    Raises:
        FileNotFoundError: If it is not there.
    """
    folds = TEACHERS[_arm_of(place)].get("folds", 1)
    places = [place] if folds == 1 else [place / str(index) for index in range(folds)]
    missing = [each for each in places if not (each / MODEL).exists()]
    if missing:
        raise FileNotFoundError(
            f"{missing[0] / MODEL} is not there: `python -m "
            "experiments.distill_digits` trains teachers, whose files are in the same "
            "--output_dir."
        )
    models = [load_model(each / MODEL, compile=False) for each in places]
    if folds == 1:
        return models[0]
    return CrossFittedTeacher(models, folds_of(len(data.labels("train")), folds, seed))


def _arm_of(place: pathlib.Path) -> str:
    found = [arm for arm in TEACHERS if place.name.startswith(f"teacher-{arm}-")]
    return max(found, key=len)


def _scores(student: keras.Model, data: Parts) -> dict[str, Any]:
    logits = fitting.logits_of(student, data)
    return {
        "parameters": count_parameters(student),
        **fitting.scores(logits, data),
    }


def _fidelity(teacher: Any, student: keras.Model, data: Parts) -> dict[str, Any]:
    """Returns how far the student says on test images what its teacher does."""
    pair = [
        scipy.special.softmax(fitting.said(each, data, "test"), axis=1)
        for each in (teacher, student)
    ]
    return {"fidelity": fidelity(*pair)._asdict()}
