"""Writing a SavedModel: beside its place, loaded again, checked, then renamed."""

from __future__ import annotations

import os
import pathlib
import shutil
import tempfile
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

_FILE = "saved_model.pb"


def write_saved_model(
    module: tf.Module,
    signatures: Mapping[str, Any],
    path: str | os.PathLike[str],
    check: Callable[[pathlib.Path], None],
    overwrite: bool = False,
) -> pathlib.Path:
    """Writes a SavedModel of plain TensorFlow operations, and checks it.

    It is written beside `path`, checked there and only then renamed to `path`. A kill
    leaves at most a hidden folder `.NAME.*` there; one between the two renames of an
    overwrite leaves the former SavedModel in its `old`.

    Args:
        module: Owner of everything that the signatures use.
        signatures: Functions by name: concrete ones, or with an `input_signature`.
        path: Directory to be made; parents are made too.
        check: Raises an error if the SavedModel in a directory is not as it should be.
        overwrite: Whether a SavedModel at `path` is replaced.

    Returns:
        `path`.

    Raises:
        FileExistsError: If there is something at `path` that may not be replaced.
        ValueError: If the graph has operations that need XLA or a GPU.
    """
    path = pathlib.Path(path)
    check_export_path(path, overwrite)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = pathlib.Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
    try:
        written = beside / "new"
        tf.saved_model.save(
            module,
            str(written),
            signatures=signatures,
            options=tf.saved_model.SaveOptions(experimental_custom_gradients=False),
        )
        _make_portable(written)
        check(written)
        _move(written, path, beside / "old")
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return path


def check_export_path(path: str | os.PathLike[str], overwrite: bool = False) -> None:
    """Checks that a SavedModel may be written; ask before a long training.

    Raises:
        FileExistsError: If something else is there, or a SavedModel that must stay.
    """
    path = pathlib.Path(path)
    if not os.path.lexists(path) or (path.is_dir() and not any(path.iterdir())):
        return
    if not (path / _FILE).is_file():
        raise FileExistsError(
            f"{path} exists and is not a SavedModel; choose another path."
        )
    if not overwrite:
        raise FileExistsError(
            f"{path} already holds a SavedModel; choose another path or say overwrite."
        )


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
    saved_model.ParseFromString((directory / _FILE).read_bytes())
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
    (directory / _FILE).write_bytes(saved_model.SerializeToString())
    # An optional file with a checksum of what has just changed.
    (directory / "fingerprint.pb").unlink(missing_ok=True)
