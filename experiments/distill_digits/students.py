"""Trains a student, alone or by a method on a teacher's files."""

from __future__ import annotations

import pathlib
import time
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import scipy.special

from experiments.distill_digits import fitting
from experiments.distill_digits.config import (
    SOTEACHERS,
    TEACHERS,
    WARM_UP,
    DigitsConfig,
)
from experiments.distill_digits.data import Parts
from experiments.distill_digits.teachers import ANCHORS, MODEL
from rlm_tf import load_model
from rlm_tf.distillation import Recipe, TaughtStrategy, recipe
from rlm_tf.evaluation import fidelity, fit_temperature
from rlm_tf.models import (
    CrossFittedTeacher,
    Distillation,
    StudentOrientedTeacher,
    calibrated_teacher,
    count_parameters,
    folds_of,
)
from rlm_tf.training import TeacherSchedule

# Between the seeds of a teacher's weights and draws and those of its students.
_DRAWS = 100
# Between which that of a teacher may be.
_TEMPERATURES = (0.05, 20.0)


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
    student = fitting.network(network, _DRAWS + seed, config.data)
    # As the teacher's draws are its own.
    batches = data.batches(config, _DRAWS + seed)
    if place is None:
        alone = StudentOrientedTeacher(
            student,
            lipschitz=0.0,
            consistency=0.0,
            epochs=config.epochs,
            l2=config.weight_decay,
        )
        alone.compile(fitting.optimizer(config, batches.steps, is_student=True))
        rows = fitting.fit(
            alone, batches, config, data, folder, [], [], is_student=True
        )
        return {**_scores(student, data), "seconds": rows[-1]["seconds"]}
    teacher = read_teacher(place, data, seed)
    if method == "calibrated":
        held = fitting.said(teacher, data, "valid")
        found = fit_temperature(held, data.labels("valid")).temperature
        # Where all or none are right it is 0 or infinite.
        teacher = calibrated_teacher(teacher, float(np.clip(found, *_TEMPERATURES)))
    chosen = recipe_of(
        config, method, _arm_of(place), data.labels("train"), batches.steps, seed
    )
    began = time.perf_counter()
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
        model.prepare(batches, epochs=config.preparing_epochs)
    first_seconds, others = time.perf_counter() - began, []
    if method == "rco":
        epochs = fitting.epochs_of(config, is_student=True)
        others.append(TeacherSchedule(teacher, place / ANCHORS, epochs))
    rows = fitting.fit(
        model, batches, config, data, folder, [], others, is_student=True
    )
    return {
        **_scores(student, data),
        **_fidelity(teacher, student, data),
        # What precedes fit() is done anew where a killed run goes on.
        "seconds": rows[-1]["seconds"] + first_seconds,
    }


def recipe_of(
    config: DigitsConfig,
    method: str,
    arm: str,
    labels: npt.ArrayLike,
    steps: int,
    seed: int,
) -> Recipe:
    """Returns losses and weights of a method.

    Args:
        config: The settings.
        method: Of `METHODS`, but `alone`.
        arm: The teacher.
        labels: Of all training examples.
        steps: Of an epoch.
        seed: Of CRD's negatives.
    """
    return recipe(
        "kd" if method in ("rco", "calibrated") else method,
        "soteacher" if arm in SOTEACHERS else "standard",
        labels=labels,
        negatives=config.negatives,
        warm_up=int(WARM_UP * config.epochs * steps),
        seed=seed,
    )


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
    model.compile(fitting.optimizer(config, steps, is_student=True))
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
