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

_LOGGER = logging.getLogger(__name__)
_NAME = re.compile(r"checkpoint-(\d{8})")
_STATE, _ARRAYS, _MANIFEST = "state.json", "arrays.npz", "manifest.json"


class Checkpoint(NamedTuple):
    """One checkpoint.

    Attributes:
        path: Its folder.
        state: What JSON can hold.
        arrays: Named arrays.
    """

    path: pathlib.Path
    state: dict[str, Any]
    arrays: dict[str, np.ndarray]


class CheckpointStore:
    """Numbered checkpoints `checkpoint-00000001/{state.json,arrays.npz,manifest.json}`.

    A checkpoint is written under another name, flushed to the disk and then renamed,
    so a kill or a power failure leaves the earlier ones as they are. Its manifest holds
    the size and SHA-256 of the other files; `load_latest` skips a checkpoint that does
    not agree with it. Loading runs nobody's code (JSON and `.npz` without pickles).

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
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        for leftover in self.directory.glob(".partial-*"):
            shutil.rmtree(leftover)
        number = max((_number(path) for path in self.paths()), default=0) + 1
        partial = self.directory / f".partial-{number:08d}"
        partial.mkdir()
        # Dtypes that NumPy does not know (kind V) would come back as raw bytes.
        foreign = {
            name: tf.as_dtype(array.dtype).name
            for name, array in arrays.items()
            if array.dtype.kind == "V"
        }
        with (partial / _STATE).open("w", encoding="utf-8") as file:
            json.dump({"state": dict(state), "dtypes": foreign}, file)
        with zipfile.ZipFile(partial / _ARRAYS, "w", zipfile.ZIP_STORED) as archive:
            for name, array in arrays.items():
                if name in foreign:
                    array = array.view(f"u{array.dtype.itemsize}")
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)
        manifest = {name: _describe(partial / name) for name in (_STATE, _ARRAYS)}
        with (partial / _MANIFEST).open("w", encoding="utf-8") as file:
            json.dump(manifest, file)
        for name in (_STATE, _ARRAYS, _MANIFEST):
            _flush(partial / name)
        _flush(partial)
        path = self.directory / f"checkpoint-{number:08d}"
        os.rename(partial, path)
        _flush(self.directory)
        for old in self.paths()[: -self.keep]:
            shutil.rmtree(old)
        return path

    def load_latest(self) -> Checkpoint | None:
        """Returns the newest checkpoint that is whole, or None if there is none.

        A damaged one is named in a warning of the logger, with what is wrong with it.
        """
        for path in reversed(self.paths()):
            try:
                return _load(path)
            except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
                _LOGGER.warning(
                    "Checkpoint %s is damaged and not used: %s. Trying the one before.",
                    path,
                    error,
                )
        return None

    def clear(self) -> None:
        """Removes all checkpoints."""
        for path in self.paths():
            shutil.rmtree(path)

    def paths(self) -> list[pathlib.Path]:
        """Returns the folders of all checkpoints, damaged ones too, oldest first."""
        if not self.directory.is_dir():
            return []
        paths = [p for p in self.directory.iterdir() if _NAME.fullmatch(p.name)]
        return sorted(paths, key=_number)


def _load(path: pathlib.Path) -> Checkpoint:
    manifest = json.loads((path / _MANIFEST).read_text(encoding="utf-8"))
    for name in (_STATE, _ARRAYS):
        expected, found = manifest[name], _describe(path / name)
        if expected != found:
            raise ValueError(f"{name} should have {expected}, found {found}")
    content = json.loads((path / _STATE).read_text(encoding="utf-8"))
    with np.load(path / _ARRAYS, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    for name, dtype in content["dtypes"].items():
        arrays[name] = arrays[name].view(tf.as_dtype(dtype).as_numpy_dtype)
    return Checkpoint(path, content["state"], arrays)


def _describe(path: pathlib.Path) -> dict[str, Any]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"bytes": path.stat().st_size, "sha256": digest}


def _flush(path: pathlib.Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _number(path: pathlib.Path) -> int:
    match = _NAME.fullmatch(path.name)
    return int(match[1]) if match else 0
