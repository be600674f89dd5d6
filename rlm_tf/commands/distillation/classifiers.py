"""Distils classifiers."""

from __future__ import annotations

import io
import pathlib
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import scipy.special
import tensorflow as tf

from rlm_tf.command_line.written_files import write_beside
from rlm_tf.commands.distillation import training
from rlm_tf.commands.distillation.claimed import claim_folder
from rlm_tf.commands.distillation.results import Distilled, Row, price_of
from rlm_tf.distillation import KD, TaughtStrategy
from rlm_tf.evaluation import expected_calibration_error, fidelity
from rlm_tf.host_tensors import host_tensor
from rlm_tf.models import Distillation, StudentOrientedTeacher
from rlm_tf.models.distillation.finite_teachers import check_finite_teacher
from rlm_tf.models.distillation.student_inputs import inputs_and_ids
from rlm_tf.models.distillation.trained_classifier import classifier_of
from rlm_tf.models.given_logits import no_probabilities
from rlm_tf.models.supervised import LEAST_ROWS
from rlm_tf.training import ResumableBatches

LOSSES = ((KD(4.0), 0.5),)
STUDENT_WEIGHT, RATE = 0.5, 1e-3
# What strategies have learnt from a teacher alone, in a folder.
PREPARED = "prepared.npz"
# Examples that shapes are found on, and that are predicted at a time.
_EXAMPLES, _ROWS = 2, 256


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
    for name, split in (("train", train), ("valid", valid), ("test", test)):
        if split is not None and (name != "train" or isinstance(split, tuple | list)):
            _check_pair(name, split)
    held = _checked_held(valid if test is None else test)
    teachers = [classifier_of(teacher) for teacher in teachers]
    names = [f"teacher {n + 1} of {len(teachers)}" for n in range(len(teachers))]
    if len(teachers) == 1:
        names = ["the teacher"]
    for name, teacher in zip(names, teachers, strict=True):
        check_finite_teacher(f"distil: {name}", teacher)
    said = _said(teachers, held[0], names)
    student = classifier_of(student)
    _check_classes(said.shape[1], student, held, train, valid)
    losses = LOSSES if losses is None else losses
    if student_weight is None:
        student_weight = STUDENT_WEIGHT
    optimizer = optimizer or keras.optimizers.Adam(RATE)
    claim_folder(
        folder,
        teachers=teachers,
        student=student,
        data={
            "train": train if isinstance(train, tuple | list) else None,
            "valid": valid,
        },
        losses=losses,
        student_weight=student_weight,
        optimizer=optimizer,
        batch_size=batch_size,
        seed=seed,
    )
    data = _batches(train, batch_size, seed)
    example = _example(data, student)
    model = Distillation(
        teachers if len(teachers) > 1 else teachers[0],
        training.copy_of(student, seed, example),
        losses,
        student_weight=student_weight,
        example=example,
    )
    alone = StudentOrientedTeacher(
        training.copy_of(student, seed, example),
        lipschitz=0.0,
        consistency=0.0,
        epochs=epochs,
    )
    for name, each in (("student alone", alone), ("student", model)):
        keras.utils.set_random_seed(seed)
        each.compile(training.copy_of_optimizer(optimizer))
        if isinstance(each, Distillation):
            _prepare(each, data, folder)
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
    rows = [
        _row("teacher", teachers, held, said, None),
        *(
            _row(name, [each], held, _said([each], held[0], [name]), said)
            for name, each in (
                ("student alone", alone.model),
                ("student", model.student),
            )
        ),
    ]
    return Distilled(model.student, alone.model, rows, "accuracy")


def example_of(held: Any) -> Any:
    """Returns inputs of a few examples of arrays `(x, labels)`.

    Raises:
        ValueError: If they are none.
    """
    _check_pair("valid", held)
    return tf.nest.map_structure(lambda part: part[:_EXAMPLES], _arrays(held[0]))


def _check_pair(name: str, given: Any) -> None:
    """Raises ValueError if something is not `(x, labels)`, in finite numbers."""
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise ValueError(
            f"distil: `{name}` must be arrays (x, labels), found "
            f"{type(given).__name__}."
        )
    for part in [*tf.nest.flatten(_arrays(given[0])), np.asarray(given[1])]:
        if part.dtype.kind not in "biuf":
            raise ValueError(
                f"distil: `{name}` must hold numbers, labels from 0 on, found "
                f"{part.dtype}."
            )
        if part.dtype.kind == "f" and not np.isfinite(part).all():
            raise ValueError(f"distil: `{name}` holds NaN or infinity.")


def _prepare(
    model: Distillation, data: ResumableBatches, folder: pathlib.Path | None
) -> None:
    """Trains what strategies learn from the teacher alone, once a folder."""
    taught = [each for each in model.strategies if isinstance(each, TaughtStrategy)]
    if all(each.is_prepared for each in taught):
        return
    file = None if folder is None else folder / PREPARED
    if file is not None and file.exists():
        with np.load(file) as found:
            for index, strategy in enumerate(taught):
                own = [
                    found[f"{index}_{place}"]
                    for place in range(len(found.files))
                    if f"{index}_{place}" in found.files
                ]
                strategy.set_weights(own)
        return
    model.prepare(data)
    if file is not None:
        weights = {
            f"{index}_{place}": weight
            for index, strategy in enumerate(taught)
            for place, weight in enumerate(strategy.get_weights())
        }
        content = io.BytesIO()
        np.savez(content, **weights)
        write_beside(file, content.getvalue())


def _example(data: ResumableBatches, student: keras.Model) -> Any:
    """Returns inputs of a few examples."""
    x = next(iter(data.dataset))[0]
    x, _ = inputs_and_ids(student, x, are_needed=False)
    return tf.nest.map_structure(lambda part: part[:_EXAMPLES], x)


def _arrays(x: Any) -> Any:
    """Returns inputs, one array or several, as arrays."""
    if isinstance(x, dict):
        return {name: np.asarray(part) for name, part in x.items()}
    if isinstance(x, tuple) or (
        isinstance(x, list) and any(getattr(part, "ndim", 0) for part in x)
    ):
        return tuple(map(np.asarray, x))
    return np.asarray(x)


def _batches(train: Any, batch_size: int, seed: int) -> ResumableBatches:
    """Returns batches of arrays `(x, labels)`, shuffled, or of what makes them."""
    if isinstance(train, ResumableBatches):
        return train
    if not isinstance(train, tuple | list):
        return ResumableBatches(train)
    x, labels = _arrays(train[0]), np.asarray(train[1])
    sizes = {len(part) for part in tf.nest.flatten(x)}
    if sizes != {len(labels)} or not len(labels):
        raise ValueError(
            "distil: `train` must be (x, labels) of as many, found "
            f"{' and '.join(map(str, sorted(sizes)))} and {len(labels)}."
        )

    # Captured, not copied into graphs.
    inputs, classes = tf.nest.map_structure(host_tensor, (x, labels))

    def elements(epoch: tf.Tensor, start: tf.Tensor) -> tf.data.Dataset:
        own = tf.stack([tf.constant(seed, tf.int64), epoch])
        numbers = tf.range(len(labels))
        order = tf.random.experimental.stateless_shuffle(numbers, own)
        ids = tf.data.Dataset.from_tensor_slices(order).skip(start * batch_size)

        def batch(ids: tf.Tensor) -> Any:
            own = tf.nest.map_structure(lambda part: tf.gather(part, ids), inputs)
            return (own, ids), tf.gather(classes, ids)

        return ids.batch(batch_size).map(batch)

    return ResumableBatches(elements, steps=-(-len(labels) // batch_size))


def _checked_held(held: tuple[Any, Any]) -> tuple[Any, np.ndarray]:
    """Returns examples and their classes, int `[N]`, before anything is trained.

    Of probabilities of classes the most probable counts.

    Raises:
        ValueError: If labels are no classes, or not as many as examples.
    """
    x, labels = _arrays(held[0]), np.asarray(held[1])
    if labels.ndim == 2 and labels.shape[1] > 1:
        labels = labels.argmax(axis=1)
    labels = labels.reshape(-1)
    sizes = {len(part) for part in tf.nest.flatten(x)}
    if sizes != {len(labels)} or not np.all(labels == np.floor(labels)):
        raise ValueError(
            "distil: what is judged on must be (x, labels) of as many, labels whole "
            f"numbers or probabilities of classes; found {max(sizes)} and "
            f"{len(labels)}."
        )
    return x, labels.astype(np.int64)


def _said(models: Sequence[Any], x: Any, names: Sequence[str]) -> np.ndarray:
    """Returns the mean of probabilities, float64 `[N, K]`.

    Raises:
        ValueError: If outputs are probabilities or of other classes, or inputs do not
            fit.
    """
    found: list[np.ndarray] = []
    for name, model in zip(names, models, strict=True):
        who = f"distil: {name}, {getattr(model, 'name', type(model).__name__)}"
        _check_inputs(who, model, x)
        logits = np.concatenate(_outputs(model, x))
        no_probabilities(who, logits, least_rows=LEAST_ROWS)
        if found and logits.shape[-1] != found[0].shape[-1]:
            raise ValueError(
                f"{who}: there are {logits.shape[-1]} classes, and {names[0]} has "
                f"{found[0].shape[-1]}."
            )
        found.append(scipy.special.softmax(logits.astype(float), axis=-1))
    return np.mean(found, axis=0)


def _check_inputs(who: str, model: Any, x: Any) -> None:
    """Raises ValueError if a functional model takes examples of another shape."""
    parts = tf.nest.flatten(x)
    wanted = [tensor.shape for tensor in getattr(model, "inputs", None) or []]
    if len(wanted) != len(parts):
        return
    for shape, part in zip(wanted, parts, strict=True):
        if not tf.TensorShape(shape[1:]).is_compatible_with(part.shape[1:]):
            raise ValueError(
                f"{who}: takes examples of shape {list(shape[1:])}, found "
                f"{list(part.shape[1:])}."
            )


def _check_classes(
    classes: int,
    student: keras.Model,
    held: tuple[Any, np.ndarray],
    train: Any,
    valid: tuple[Any, Any],
) -> None:
    """Raises ValueError if the student or labels have other classes than teachers.

    Before anything is trained.
    """
    name = f"distil: the student, {student.name}"
    x = _rows(held[0], 0, _ROWS)
    _check_inputs(name, student, x)
    logits = np.asarray(student(x, training=False))
    no_probabilities(name, logits, least_rows=LEAST_ROWS)
    if logits.ndim != 2 or logits.shape[1] != classes:
        raise ValueError(
            f"{name}: what it gives has shape {['N', *logits.shape[1:]]}, expected "
            f"logits of the teacher's {classes} classes."
        )
    for split, labels in (
        ("train", train[1] if isinstance(train, tuple | list) else []),
        ("valid", valid[1]),
        ("test", held[1]),
    ):
        own = np.asarray(labels)
        wrong = own[(own < 0) | (own >= classes)] if own.ndim == 1 else own[:0]
        if wrong.size:
            raise ValueError(
                f"distil: labels of `{split}` must lie in [0, {classes}), the classes "
                f"of the teacher; found {wrong[0]}."
            )


def _outputs(model: Any, x: Any) -> list[np.ndarray]:
    call = tf.function(lambda x: model(x, training=False), reduce_retracing=True)
    size = len(tf.nest.flatten(x)[0])
    return [
        np.asarray(call(_rows(x, start, start + _ROWS)))
        for start in range(0, size, _ROWS)
    ]


def _rows(x: Any, start: int, end: int) -> Any:
    return tf.nest.map_structure(lambda part: tf.constant(part[start:end]), x)


def _row(
    name: str,
    models: Sequence[Any],
    held: tuple[Any, Any],
    probs: np.ndarray,
    teacher: np.ndarray | None,
) -> Row:
    x, labels = held
    own = np.maximum(probs[np.arange(len(labels)), labels], 1e-300)
    one = _rows(x, 0, 1)
    calls = [tf.function(lambda x, m=m: m(x, training=False)) for m in models]
    return Row(
        name,
        **price_of(models, lambda: [call(one) for call in calls]),
        score=float(np.mean(probs.argmax(axis=1) == labels)),
        nll=float(-np.log(own).mean()),
        calibration=expected_calibration_error(probs, labels),
        fidelity=None if teacher is None else fidelity(teacher, probs).agreement,
    )
