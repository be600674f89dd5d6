"""Whose folder of checkpoints it is: that of one call of `distil`."""

from __future__ import annotations

import hashlib
import pathlib
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from rlm_tf.command_line.json_files import read_json, write_json
from rlm_tf.command_line.same_settings import check_same_settings

FILE = "distil.json"
_REMEDY = "another `folder`"
# What Keras makes up, or what is of no training.
_UNTOLD = ("name", "trainable")


def claim_folder(
    folder: pathlib.Path | None,
    *,
    teachers: Sequence[Any],
    student: keras.Model,
    data: dict[str, Any],
    losses: Any,
    student_weight: Any,
    optimizer: keras.optimizers.Optimizer,
    **settings: Any,
) -> None:
    """Notes what a folder's checkpoints are of.

    Args:
        folder: The folder; None: there is none.
        teachers: Models or restricted models.
        student: The student, untrained.
        data: By name, arrays or tuples of such; None: not known.
        losses: As `distil` takes them.
        student_weight: A coefficient.
        optimizer: The optimiser.
        **settings: Numbers.

    Raises:
        ValueError: If they are of something else.
    """
    if folder is None:
        return
    given = losses if isinstance(losses, list | tuple) else [losses]
    own = {
        "teachers_sha256": _digest(list(teachers)),
        "student_sha256": _digest([student]),
        **{
            f"{name}_sha256": None if each is None else _digest(each)
            for name, each in data.items()
        },
        "losses": [_told(each) for each in given],
        "student_weight": _told(student_weight),
        "optimizer": _told(optimizer),
        **settings,
    }
    file = folder / FILE
    if file.exists():
        check_same_settings(
            read_json(file, f"give {_REMEDY}"), own, f"distil: {file}", _REMEDY
        )
        return
    folder.mkdir(parents=True, exist_ok=True)
    write_json(file, own)


def _digest(value: Any) -> str:
    """Returns a digest of models, or of arrays."""
    found = hashlib.sha256()
    for each in _leaves(value):
        if isinstance(each, keras.layers.Layer):
            found.update(type(each).__name__.encode())
            for weight in each.get_weights():
                found.update(np.ascontiguousarray(weight).tobytes())
        elif hasattr(each, "get_config"):
            found.update(repr(keras.saving.serialize_keras_object(each)).encode())
        else:
            array = np.ascontiguousarray(each)
            found.update(f"{array.dtype} {array.shape}".encode())
            found.update(array.tobytes())
    return found.hexdigest()


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for name in sorted(value) for leaf in _leaves(value[name])]
    if isinstance(value, list | tuple):
        return [leaf for each in value for leaf in _leaves(each)]
    return [value]


def _told(value: Any) -> Any:
    """Returns what a strategy, a schedule or a pair says of itself, as JSON has it."""
    if isinstance(value, list | tuple):
        return [_told(each) for each in value]
    if isinstance(value, dict):
        return {
            name: _told(each) for name, each in value.items() if name not in _UNTOLD
        }
    if hasattr(value, "get_config"):
        return {type(value).__name__: _told(value.get_config())}
    if isinstance(value, str | int | float | bool | None):
        return value
    return repr(value)
