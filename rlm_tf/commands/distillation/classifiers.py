"""Distils classifiers."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import scipy.special
import tensorflow as tf

from rlm_tf.commands.distillation import training
from rlm_tf.commands.distillation.results import Distilled, Row, price_of
from rlm_tf.distillation import KD
from rlm_tf.evaluation import expected_calibration_error, fidelity
from rlm_tf.host_tensors import host_tensor
from rlm_tf.models import Distillation, StudentOrientedTeacher
from rlm_tf.models.distillation.trained_classifier import classifier_of
from rlm_tf.training import ResumableBatches

LOSSES = ((KD(4.0), 0.5),)
STUDENT_WEIGHT, RATE = 0.5, 1e-3


def distil_classifier(
    teachers: Sequence[keras.Model],
    student: keras.Model,
    train: Any,
    valid: tuple[Any, Any],
    test: tuple[Any, Any] | None,
    *,
    losses: Any,
    student_weight: Any,
    epochs: int,
    optimizer: keras.optimizers.Optimizer | None,
    folder: pathlib.Path | None,
    batch_size: int,
    seed: int,
    verbose: int,
) -> Distilled:
    """See `rlm_tf.commands.distil.distil`."""
    held = _checked_held(valid if test is None else test)
    teachers = [classifier_of(teacher) for teacher in teachers]
    optimizer = optimizer or keras.optimizers.Adam(RATE)
    keras.utils.set_random_seed(seed)
    model = Distillation(
        teachers if len(teachers) > 1 else teachers[0],
        training.copy_of(student),
        LOSSES if losses is None else losses,
        student_weight=STUDENT_WEIGHT if student_weight is None else student_weight,
    )
    alone = StudentOrientedTeacher(
        training.copy_of(student), lipschitz=0.0, consistency=0.0, epochs=epochs
    )
    for name, each in (("student alone", alone), ("student", model)):
        # Of the same order, dropout and draws.
        keras.utils.set_random_seed(seed)
        each.compile(training.copy_of_optimizer(optimizer))
        data = _batches(train, batch_size, seed)
        if isinstance(each, Distillation) and any(
            hasattr(strategy, "is_prepared") for strategy in each.strategies
        ):
            each.prepare(data.dataset)
        training.fit(
            each,
            data,
            valid,
            epochs,
            None if folder is None else folder / name.split()[-1],
            monitor="val_accuracy",
            mode="max",
            further=[],
            name=name,
            verbose=verbose,
        )
    said = _probs(teachers, held[0])
    rows = [
        _row("teacher", teachers, held, None),
        _row("student alone", [alone.model], held, said),
        _row("student", [model.student], held, said),
    ]
    return Distilled(model.student, alone.model, rows, "accuracy")


def _batches(train: Any, batch_size: int, seed: int) -> ResumableBatches:
    """Returns batches of arrays `(x, labels)`, shuffled, or of what makes them."""
    if isinstance(train, ResumableBatches):
        return train
    if not isinstance(train, tuple | list):
        return ResumableBatches(train)
    x, labels = (np.asarray(each) for each in train)
    if len(x) != len(labels) or not len(x):
        raise ValueError(
            f"distil: `train` must be (x, labels) of as many, found {len(x)} and "
            f"{len(labels)}."
        )

    # Captured, not copied into graphs.
    inputs, classes = host_tensor(x), host_tensor(labels)

    def elements(epoch: tf.Tensor, start: tf.Tensor) -> tf.data.Dataset:
        own = tf.stack([tf.constant(seed, tf.int64), epoch])
        order = tf.random.experimental.stateless_shuffle(tf.range(len(x)), own)
        ids = tf.data.Dataset.from_tensor_slices(order).skip(start * batch_size)
        return ids.batch(batch_size).map(
            lambda ids: ((tf.gather(inputs, ids), ids), tf.gather(classes, ids))
        )

    return ResumableBatches(elements, steps=-(-len(x) // batch_size))


def _checked_held(held: tuple[Any, Any]) -> tuple[Any, np.ndarray]:
    """Returns examples and their classes, int `[N]`, before anything is trained.

    Of probabilities of classes the most probable counts.

    Raises:
        ValueError: If labels are no classes, or not as many as examples.
    """
    x, labels = held[0], np.asarray(held[1])
    if labels.ndim == 2 and labels.shape[1] > 1:
        labels = labels.argmax(axis=1)
    labels = labels.reshape(-1)
    if len(labels) != len(x) or not np.all(labels == np.floor(labels)):
        raise ValueError(
            "distil: what is judged on must be (x, labels) of as many, labels whole "
            f"numbers or probabilities of classes; found {len(x)} and {len(labels)}."
        )
    return x, labels.astype(np.int64)


def _probs(models: Sequence[keras.Model], x: Any) -> np.ndarray:
    """Returns the mean of probabilities, `[N, K]`."""
    found = [
        scipy.special.softmax(np.asarray(m.predict(x, verbose=0), float), axis=-1)
        for m in models
    ]
    return np.mean(found, axis=0)


def _row(
    name: str,
    models: Sequence[keras.Model],
    held: tuple[Any, Any],
    teacher: np.ndarray | None,
) -> Row:
    x, labels = held
    probs = _probs(models, x)
    own = np.maximum(probs[np.arange(len(labels)), labels], 1e-300)
    one = tf.constant(np.asarray(x)[:1])
    calls = [tf.function(lambda x, m=m: m(x, training=False)) for m in models]
    return Row(
        name,
        **price_of(models, lambda: [call(one) for call in calls]),
        score=float(np.mean(probs.argmax(axis=1) == labels)),
        nll=float(-np.log(own).mean()),
        calibration=expected_calibration_error(probs, labels),
        fidelity=None if teacher is None else fidelity(teacher, probs).agreement,
    )
