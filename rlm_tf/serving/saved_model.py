"""Writing a SavedModel: beside its place, loaded again, checked, then renamed."""

from __future__ import annotations

import os
import pathlib
import shutil
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from rlm_tf.serving.export_path import (
    NEW,
    OLD,
    SAVED_MODEL,
    check_export_path,
    export_place,
    served_name,
    working_folder,
)
from rlm_tf.serving.warm_up import WARM_UP_FILE, is_own_warm_up, write_warm_up

Requests = Mapping[str, Mapping[str, tf.Tensor]]


def write_saved_model(
    module: tf.Module,
    signatures: Mapping[str, Any],
    path: str | os.PathLike[str],
    check: Callable[[pathlib.Path], None],
    requests: Requests,
    overwrite: bool = False,
) -> pathlib.Path:
    """Writes a SavedModel of plain TensorFlow operations, and checks it.

    It is written beside `path`, checked there and only then renamed to `path`. A kill
    leaves at most a hidden folder `.NAME.*` there, which the next export removes; one
    between the two renames of an overwrite leaves the former SavedModel in its `old`.
    Files that a person has put into the former one's `assets.extra` are taken over.

    Args:
        module: Owner of everything that the signatures use.
        signatures: Functions by name: concrete ones, or with an `input_signature`.
        path: Directory to be made; parents are made too. A symbolic link is kept, and
            what it points to is written.
        check: Raises an error if the SavedModel in a directory is not as it should be.
        requests: Inputs by signature, with which TensorFlow Serving warms up.
        overwrite: Whether a SavedModel at `path` is replaced.

    Returns:
        `path`.

    Raises:
        FileExistsError: If there is something at `path` that may not be replaced.
        OSError: If it cannot be written; names the path.
        ValueError: If the graph has operations that need XLA or a GPU, or TensorFlow
            could not read files of that name.
    """
    check_export_path(path, overwrite)
    place = export_place(path)
    with working_folder(place) as beside:
        written = beside / NEW
        tf.saved_model.save(
            module,
            str(written),
            signatures=signatures,
            options=tf.saved_model.SaveOptions(experimental_custom_gradients=False),
        )
        _make_portable(written)
        check(written)
        write_warm_up(written, served_name(path), requests.items())
        # Another process may have been faster.
        check_export_path(path, overwrite)
        _take_over_extras(place, written)
        _move(written, place, beside / OLD)
    return pathlib.Path(path)


def check_weights(
    function: str, weights: Iterable[keras.Variable], *, tables: bool = False
) -> None:
    """Raises ValueError if a weight holds what diverged training leaves.

    That is NaN, or infinity but where it forbids a word: minus infinity in a bias.

    Args:
        function: Name of the calling function; the message starts with it.
        weights: The weights.
        tables: Whether matrices may hold minus infinity, too: logits that are looked
            up.
    """
    for weight in weights:
        value = weight.value
        if not value.dtype.is_floating:
            continue
        if bool(tf.reduce_any(tf.math.is_nan(value))):
            found = "NaN"
        elif bool(tf.reduce_any(value == np.inf)):
            found = "infinity"
        elif value.shape.rank > 1 and not tables and tf.reduce_any(value == -np.inf):
            found = "minus infinity, which only a bias may"
        else:
            continue
        raise ValueError(
            f"{function}: the weight {weight.path} holds {found} (training has "
            "diverged); nothing was written."
        )


def _take_over_extras(place: pathlib.Path, written: pathlib.Path) -> None:
    """Copies what a person has put into the former SavedModel's `assets.extra`."""
    extras = WARM_UP_FILE.parent
    if not (place / extras).is_dir():
        return
    own = is_own_warm_up(place / WARM_UP_FILE)
    for child in (place / extras).iterdir():
        if own and child.name == WARM_UP_FILE.name:
            continue
        target = written / extras / child.name
        target.unlink(missing_ok=True)
        if child.is_dir() and not child.is_symlink():
            shutil.copytree(child, target, symlinks=True)
        else:
            shutil.copy2(child, target, follow_symlinks=False)


def _move(written: pathlib.Path, path: pathlib.Path, old: pathlib.Path) -> None:
    """Renames `written` to `path`; what was there goes to `old`."""
    if not path.exists():
        os.rename(written, path)
        return
    os.rename(path, old)
    try:
        os.rename(written, path)
    except BaseException:
        os.rename(old, path)
        raise


def _make_portable(directory: pathlib.Path) -> None:
    """Checks the operations of a SavedModel and removes what refers to gradients.

    Operations with a custom gradient name it, and a loader that does not find it prints
    dozens of warnings; nobody differentiates a served model.

    Raises:
        ValueError: If there are operations that run on few machines.
    """
    saved_model = saved_model_pb2.SavedModel()
    saved_model.ParseFromString((directory / SAVED_MODEL).read_bytes())
    functions = saved_model.meta_graphs[0].graph_def.library.function
    special = set()
    for function in functions:
        # Reading an absent attribute of a protocol buffer would create it.
        if "_XlaMustCompile" in function.attr and function.attr["_XlaMustCompile"].b:
            special.add("XLA")
        for node in function.node_def:
            node.attr.pop("_gradient_op_type", None)
            if node.op.startswith(("Cudnn", "Xla")):
                special.add(node.op)
    if special:
        raise ValueError(
            f"the model computes with {', '.join(special)}, "
            "which a server may not have. Export in a process that sees no GPU "
            "(CUDA_VISIBLE_DEVICES=-1), and build layers without jit_compile."
        )
    (directory / SAVED_MODEL).write_bytes(saved_model.SerializeToString())
    # An optional file with a checksum of what has just changed.
    (directory / "fingerprint.pb").unlink(missing_ok=True)
