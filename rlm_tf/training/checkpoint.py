"""A folder of numbered checkpoints, each written whole or not at all."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import pathlib
import re
import shutil
import zipfile
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_integer
from rlm_tf.file_errors import naming

# What is written, see `Checkpoint.format`. Raise it when a checkpoint gets a meaning
# that older code would misread, say so here, and teach `_load` the formats before.
#   0: had no number, nor phases of models.
#   1: the number is in the manifest; models have a `phase`, and the weights of all
#      their `frozen_models`, whatever attribute holds them, are a digest.
FORMAT = 1

_LOGGER = logging.getLogger(__name__)
_NAME = re.compile(r"checkpoint-(\d{8})")
_STATE, _ARRAYS, _MANIFEST = "state.json", "arrays.npz", "manifest.json"
# What reading a file may raise that is not what was written.
_DAMAGE = (OSError, ValueError, KeyError, TypeError, EOFError, RecursionError)


class Checkpoint(NamedTuple):
    """One checkpoint.

    Attributes:
        path: Its folder.
        state: What JSON can hold.
        arrays: Named arrays.
        format: Number of the format it was written in; 0 before there were numbers.
    """

    path: pathlib.Path
    state: dict[str, Any]
    arrays: dict[str, np.ndarray]
    format: int = FORMAT

    @property
    def origin(self) -> str:
        """Where it comes from, for messages: its folder, and its format if not ours."""
        if self.format == FORMAT:
            return str(self.path)
        return f"{self.path} (of format {self.format}, this version writes {FORMAT})"


class CheckpointStore:
    """Numbered checkpoints `checkpoint-00000001/{state.json,arrays.npz,manifest.json}`.

    A checkpoint is written under another name, flushed to the disk and then renamed,
    so a kill or a power failure leaves the earlier ones as they are. Its manifest holds
    the number of its format, and size and SHA-256 of the other files; `load_latest`
    skips a checkpoint that does not agree with it. Loading runs nobody's code (JSON and
    `.npz` without pickles).

    Args:
        directory: Created when the first checkpoint is written.
        keep: How many checkpoints to keep, at least 1; 2 survive damage to the last.

    Raises:
        ValueError: If `keep` is below 1, or `directory` is a file.
    """

    def __init__(self, directory: str | os.PathLike[str], *, keep: int = 2):
        self.directory = pathlib.Path(directory)
        self.keep = keep
        check_integer("CheckpointStore", "keep", keep, 1)
        if self.directory.exists() and not self.directory.is_dir():
            raise ValueError(
                f"CheckpointStore: `directory` must be a folder, {self.directory} is "
                "a file."
            )

    def save(
        self, state: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> pathlib.Path:
        """Writes one more checkpoint, then removes the oldest ones.

        Args:
            state: JSON object; not-a-number and infinity are allowed.
            arrays: Arrays of numbers, bfloat16 included.

        Returns:
            The folder of the checkpoint.

        Raises:
            OSError: If it cannot be written; names the file. The others stay.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        for leftover in self.directory.glob(".partial-*"):
            _remove(leftover)
        number = max((_number(path) for path in self.paths()), default=0) + 1
        partial = self.directory / f".partial-{number:08d}"
        partial.mkdir()
        path = self.directory / f"checkpoint-{number:08d}"
        try:
            _write(partial, state, arrays)
            os.rename(partial, path)
        except BaseException:
            # On a full disk it would be in the way of what comes next.
            shutil.rmtree(partial, ignore_errors=True)
            raise
        _flush(self.directory)
        for old in self.paths()[: -self.keep]:
            _remove(old)
        return path

    def load_latest(self) -> Checkpoint | None:
        """Returns the newest checkpoint that is whole, or None if there is none.

        A damaged one is named in a warning of the logger, with what is wrong with it.

        Raises:
            ValueError: If the newest is of a format that this version does not know.
        """
        paths = self.paths()
        for path in reversed(paths):
            try:
                return _load(path)
            except _UnknownFormatError as error:
                raise ValueError(f"CheckpointStore: {error}") from None
            except (*_DAMAGE, zipfile.BadZipFile) as error:
                _LOGGER.warning(
                    "Checkpoint %s is damaged and not used: %s. Trying the one before.",
                    path,
                    error,
                )
        if paths:
            _LOGGER.warning("%s holds no whole checkpoint.", self.directory)
        return None

    def clear(self) -> None:
        """Removes all checkpoints."""
        for path in self.paths():
            _remove(path)

    def paths(self) -> list[pathlib.Path]:
        """Returns the folders of all checkpoints, damaged ones too, oldest first."""
        if not self.directory.is_dir():
            return []
        paths = [p for p in self.directory.iterdir() if _NAME.fullmatch(p.name)]
        return sorted(paths, key=_number)


class _UnknownFormatError(Exception):
    """A checkpoint is of a later version than this."""


def _write(
    partial: pathlib.Path, state: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> None:
    # Dtypes that NumPy does not know (kind V) would come back as raw bytes.
    foreign = {
        name: tf.as_dtype(array.dtype).name
        for name, array in arrays.items()
        if array.dtype.kind == "V"
    }
    path = partial / _STATE
    with naming(path), path.open("w", encoding="utf-8") as file:
        json.dump({"state": dict(state), "dtypes": foreign}, file)
    path = partial / _ARRAYS
    with naming(path), zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            if name in foreign:
                array = array.view(f"u{array.dtype.itemsize}")
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
    manifest: dict[str, Any] = {"format": FORMAT}
    manifest |= {name: _describe(partial / name) for name in (_STATE, _ARRAYS)}
    path = partial / _MANIFEST
    with naming(path), path.open("w", encoding="utf-8") as file:
        json.dump(manifest, file)
    for name in (_STATE, _ARRAYS, _MANIFEST):
        _flush(partial / name)
    _flush(partial)


def _load(path: pathlib.Path) -> Checkpoint:
    manifest = _object(path / _MANIFEST)
    number = manifest.get("format", 0)
    if not isinstance(number, int) or number < 0:
        raise ValueError(f"{_MANIFEST} has the format {number!r}")
    if number > FORMAT:
        raise _UnknownFormatError(
            f"{path} has format {number}, this version of rlm_tf reads formats up to "
            f"{FORMAT}. Go on with the version that wrote it, or start anew."
        )
    for name in (_STATE, _ARRAYS):
        expected, found = manifest[name], _describe(path / name)
        if expected != found:
            raise ValueError(f"{name} should have {expected}, found {found}")
    content = _object(path / _STATE)
    state, dtypes = content["state"], content["dtypes"]
    if not isinstance(state, dict) or not isinstance(dtypes, dict):
        raise ValueError(f"{_STATE} should hold two JSON objects")
    with np.load(path / _ARRAYS, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    for name, dtype in dtypes.items():
        arrays[name] = arrays[name].view(tf.as_dtype(dtype).as_numpy_dtype)
    return Checkpoint(path, state, arrays, number)


def _object(path: pathlib.Path) -> dict[str, Any]:
    content = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict):
        raise ValueError(
            f"{path.name} should hold a JSON object, found {type(content).__name__}"
        )
    return content


def _describe(path: pathlib.Path) -> dict[str, Any]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"bytes": path.stat().st_size, "sha256": digest}


def _flush(path: pathlib.Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with naming(path):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(path: pathlib.Path) -> None:
    """Removes a folder, or what stands where one should be."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _number(path: pathlib.Path) -> int:
    match = _NAME.fullmatch(path.name)
    return int(match[1]) if match else 0
