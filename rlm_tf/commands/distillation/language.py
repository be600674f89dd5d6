"""Distils language models."""

from __future__ import annotations

import pathlib
import tempfile
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from rlm_tf.commands.distillation import training
from rlm_tf.commands.distillation.claimed import claim_folder
from rlm_tf.commands.distillation.results import Distilled, Row, price_of
from rlm_tf.data import PlacedBatches, contiguous_batches
from rlm_tf.distillation import KD, Strategy
from rlm_tf.evaluation import TokenFidelity, token_fidelity
from rlm_tf.models import (
    LanguageDistillation,
    StudentOrientedLanguageTeacher,
    TeacherPredictions,
)
from rlm_tf.models.language.interface import interface_of, language_model_of
from rlm_tf.objective_model.objective_model import ObjectiveModel
from rlm_tf.training import LearningRateHalving, ResumableBatches

LOSSES = ((KD(1.0), 0.5),)
STUDENT_WEIGHT, RATE = 0.5, 3e-3
# Words that are stored of each token.
_K = 64
_HALVINGS = 3
# What a model without weights is built on.
_TOKENS = np.zeros([1, 2], np.int32)


def distil_language(
    teachers: Sequence[Any],
    student: keras.Model,
    train: np.ndarray,
    valid: np.ndarray,
    test: np.ndarray | None,
    *,
    prefix: int,
    losses: Any,
    student_weight: Any,
    epochs: int,
    optimizer: keras.optimizers.Optimizer | None,
    folder: pathlib.Path | None,
    batch_size: int,
    window: int,
    seed: int,
    verbose: int,
) -> Distilled:
    """See `rlm_tf.commands.distil.distil`."""
    losses = LOSSES if losses is None else losses
    if student_weight is None:
        student_weight = STUDENT_WEIGHT
    optimizer = optimizer or adam(RATE)
    student = _bare(student)
    text = valid if test is None else test
    for model in (*teachers, student):
        _check_tokens(model, max(int(part.max()) for part in (train, valid, text)))
    claim_folder(
        folder,
        teachers=teachers,
        student=student,
        data={"train": train, "valid": valid},
        losses=losses,
        student_weight=student_weight,
        optimizer=optimizer,
        batch_size=batch_size,
        window=window,
        seed=seed,
    )
    batches = contiguous_batches(train, batch_size, window, prefix=prefix)
    held = contiguous_batches(valid, batch_size, window, prefix=prefix)
    data = ResumableBatches(PlacedBatches(batches))
    with tempfile.TemporaryDirectory() as temporary:
        teacher = _stored(teachers, losses, batches, pathlib.Path(folder or temporary))
        model = LanguageDistillation(
            teacher,
            training.copy_of(student, seed, _TOKENS),
            losses,
            student_weight=student_weight,
        )
        alone = training.copy_of(student, seed, _TOKENS)
        # One that has no terms of its own is trained by its text in what has.
        trained = alone
        if not isinstance(alone, ObjectiveModel):
            trained = StudentOrientedLanguageTeacher(
                alone, lipschitz=0.0, consistency=0.0, epochs=epochs
            )
        plain = ResumableBatches(batches)
        for name, each, own in (
            ("student alone", trained, plain),
            ("student", model, data),
        ):
            keras.utils.set_random_seed(seed)
            each.compile(training.copy_of_optimizer(optimizer))
            halving = LearningRateHalving(
                "val_nll", max_decays=_HALVINGS, reload_best=False
            )
            training.fit(
                each,
                own,
                held.dataset(),
                epochs,
                None if folder is None else folder / name.split()[-1],
                monitor="val_nll",
                mode="min",
                further=[halving],
                name=name,
                verbose=verbose,
            )
        model.set_teacher(None)
    found = [
        token_fidelity(list(teachers), each, text, prefix=prefix)[0]
        for each in (alone, model.student)
    ]
    of_teacher = found[0]
    rows = [
        _row(
            "teacher",
            [language_model_of(each) for each in teachers],
            of_teacher.teacher_nll,
            of_teacher.teacher_calibration,
            None,
        ),
        _student_row("student alone", alone, found[0]),
        _student_row("student", model.student, found[1]),
    ]
    return Distilled(model.student, alone, rows, "perplexity")


def adam(rate: float) -> keras.optimizers.Optimizer:
    """Returns the optimiser of language models at a rate."""
    return keras.optimizers.Adam(rate, epsilon=1e-8)


def _bare(student: keras.Model) -> keras.Model:
    """Returns the student in what has trained it on a teacher, or as one."""
    while isinstance(student, LanguageDistillation | StudentOrientedLanguageTeacher):
        student = student.model
    return student


def _check_tokens(model: Any, most: int) -> None:
    """Raises ValueError if a text has tokens that a model does not know."""
    if isinstance(model, keras.Model):
        size = interface_of(model).vocabulary_size
        if size is None and getattr(model, "output_shape", None) is not None:
            size = model.output_shape[-1]
    else:
        size = getattr(model, "vocabulary_size", None)
    if size is not None and most >= size:
        name = getattr(model, "name", type(model).__name__)
        raise ValueError(
            f"distil: {name} knows {size:,} words, 0 to {size - 1}, and the text has "
            f"token {most}: was it encoded by another vocabulary?"
        )


def _stored(
    teachers: Sequence[Any], losses: Any, batches: Any, folder: pathlib.Path
) -> Any:
    """Returns stored predictions where they are enough, else the teachers."""
    given = [losses] if isinstance(losses, Strategy) else list(losses)
    strategies = [each[0] if isinstance(each, tuple | list) else each for each in given]
    temperatures = {getattr(each, "temperature", None) for each in strategies}
    if not all(type(each) is KD for each in strategies) or len(temperatures) > 1:
        return teachers[0] if len(teachers) == 1 else list(teachers)
    path = folder / "predictions"
    if path.exists():
        # Of these teachers: `claim_folder` has seen to it.
        return TeacherPredictions(path)
    return TeacherPredictions.write(
        list(teachers), batches, path, k=_K, temperature=float(temperatures.pop() or 1)
    )


def _student_row(name: str, model: keras.Model, found: TokenFidelity) -> Row:
    return _row(
        name, [model], found.student_nll, found.student_calibration, found.agreement
    )


def _row(
    name: str,
    models: Sequence[keras.Model],
    nll: float,
    calibration: float,
    agreement: float | None,
) -> Row:
    token = tf.zeros([1, 1], tf.int32)
    calls = [tf.function(lambda x, m=m: m(x, training=False)) for m in models]
    return Row(
        name,
        **price_of(models, lambda: [call(token) for call in calls]),
        score=float(np.exp(nll)),
        nll=nll,
        calibration=calibration,
        fidelity=agreement,
    )
