"""Distils language models."""

from __future__ import annotations

import hashlib
import pathlib
import tempfile
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from rlm_tf.command_line.json_files import read_json, write_json
from rlm_tf.commands.distillation import training
from rlm_tf.commands.distillation.results import Distilled, Row, price_of
from rlm_tf.data import PlacedBatches, contiguous_batches
from rlm_tf.distillation import KD, Strategy
from rlm_tf.evaluation import TokenFidelity, token_fidelity
from rlm_tf.models import LanguageDistillation, TeacherPredictions
from rlm_tf.models.language.interface import language_model_of
from rlm_tf.training import LearningRateHalving, ResumableBatches

LOSSES = ((KD(1.0), 0.5),)
STUDENT_WEIGHT, RATE = 0.5, 3e-3
# Words that are stored of each token.
_K = 64
_HALVINGS = 3


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
    optimizer = optimizer or keras.optimizers.Adam(RATE, epsilon=1e-8)
    batches = contiguous_batches(train, batch_size, window, prefix=prefix)
    held = contiguous_batches(valid, batch_size, window, prefix=prefix)
    data = ResumableBatches(PlacedBatches(batches))
    if folder is not None:
        _claim(folder, teachers)
    with tempfile.TemporaryDirectory() as temporary:
        teacher = _stored(teachers, losses, batches, pathlib.Path(folder or temporary))
        keras.utils.set_random_seed(seed)
        model = LanguageDistillation(
            teacher,
            training.copy_of(student),
            losses,
            student_weight=STUDENT_WEIGHT if student_weight is None else student_weight,
        )
        alone = training.copy_of(student)
        plain = ResumableBatches(batches)
        for name, each, own in (
            ("student alone", alone, plain),
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
    text = valid if test is None else test
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


def _claim(folder: pathlib.Path, teachers: Sequence[Any]) -> None:
    """Notes whose students a folder has.

    Raises:
        ValueError: If they are those of other teachers.
    """
    digest = hashlib.sha256()
    for teacher in teachers:
        digest.update(type(teacher).__name__.encode())
        if isinstance(teacher, keras.Model):
            for weight in teacher.weights:
                digest.update(np.ascontiguousarray(weight.numpy()).tobytes())
        else:
            digest.update(repr(keras.saving.serialize_keras_object(teacher)).encode())
    own, file = {"weights": digest.hexdigest()}, folder / "teachers.json"
    remedy = "give another folder"
    if file.exists() and read_json(file, remedy) != own:
        raise ValueError(
            f"distil: {folder} holds a student of other teachers; {remedy}."
        )
    folder.mkdir(parents=True, exist_ok=True)
    write_json(file, own)


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
        # Of these teachers: `_claim` has seen to it.
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
