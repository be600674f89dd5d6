"""A folder of numbered checkpoints, each written whole or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import pathlib
import re
import shutil
import sys
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import tensorflow as tf

from rlm_tf.checks import check_integer
from rlm_tf.file_errors import naming
from rlm_tf.workers import Workers

# What is written, see `Checkpoint.format`. Raise it when a checkpoint gets a meaning
# that older code would misread, say so here, and teach `_load` the formats before.
#   0: had no number, nor phases of models.
#   1: the number is in the manifest; models have a `phase`, and the weights of all
#      their `frozen_models`, whatever attribute holds them, are a digest.
FORMAT = 1

_Arrays: TypeAlias = Mapping[str, np.ndarray]
_LOGGER = logging.getLogger(__name__)
_NAME = re.compile(r"checkpoint-(\d{8})")
_STATE, _ARRAYS, _MANIFEST = "state.json", "arrays.npz", "manifest.json"
_OWN = re.compile(r"worker-\d{5}\.(json|npz)")
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

    Of several workers, which all have to see the same folder, each writes the arrays of
    its own replicas (`worker-00001.{json,npz}`), the chief everything else; its
    manifest and the new name come when all are done.

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
        self,
        state: Mapping[str, Any],
        arrays: Mapping[str, np.ndarray],
        own: Mapping[str, np.ndarray] | None = None,
        workers: Workers | None = None,
    ) -> pathlib.Path:
        """Writes one more checkpoint, then removes the oldest ones.

        Args:
            state: JSON object; not-a-number and infinity are allowed.
            arrays: Arrays of numbers, bfloat16 included; the same on all workers.
            own: Those of this worker alone, under names that no other worker has.
            workers: All workers, each of which has to call this; None: there is one.

        Returns:
            The folder of the checkpoint.

        Raises:
            OSError: If it cannot be written; names the file. The others stay.
        """
        workers = workers or Workers(tf.distribute.get_strategy())
        number = max((_number(path) for path in self.paths()), default=0) + 1
        number = workers.chiefs(number)
        partial = self.directory / f".partial-{number:08d}"
        path = self.directory / f"checkpoint-{number:08d}"
        try:
            with _together(workers, "made"):
                if workers.is_chief:
                    self.directory.mkdir(parents=True, exist_ok=True)
                    for leftover in self.directory.glob(".partial-*"):
                        _remove(leftover)
                    partial.mkdir()
            with _together(workers, "written"):
                if workers.is_chief:
                    _write(partial, state, {**arrays, **(own or {})})
                else:
                    _write_own(partial, workers.index, own or {})
            with _together(workers, "completed"):
                if workers.is_chief:
                    _write_manifest(partial)
                    os.rename(partial, path)
        except BaseException:
            # On a full disk it would be in the way of what comes next.
            if workers.is_chief:
                shutil.rmtree(partial, ignore_errors=True)
            raise
        if workers.is_chief:
            _flush(self.directory)
            for old in self.paths()[: -self.keep]:
                _remove(old)
        return path

    def load_latest(self, workers: Workers | None = None) -> Checkpoint | None:
        """Returns the newest checkpoint that is whole, or None if there is none.

        A damaged one is named in a warning of the logger, with what is wrong with it.

        Args:
            workers: All workers, each of which has to call this and gets the same
                checkpoint, with the arrays of all; None: there is one.

        Raises:
            ValueError: If the newest is of a format that this version does not know, or
                a worker does not see what the chief sees.
        """
        workers = workers or Workers(tf.distribute.get_strategy())
        if not workers.are_several:
            return self._newest()
        found = None
        with _together(workers, "read"):
            found = self._newest() if workers.is_chief else None
        number = workers.chiefs(0 if found is None else _number(found.path))
        if number == 0:
            return None
        with _together(workers, "read"):
            path = self.directory / f"checkpoint-{number:08d}"
            try:
                return found or _load(path)
            except (*_DAMAGE, zipfile.BadZipFile) as error:
                raise ValueError(
                    f"CheckpointStore: worker {workers.index} cannot read {path}, from "
                    f"which the chief goes on ({error}). All workers need the same "
                    "folder, on a file system that they share."
                ) from None
        return None

    def _newest(self) -> Checkpoint | None:
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


@contextlib.contextmanager
def _together(workers: Workers, done: str) -> Iterator[None]:
    """Lets workers go on when all have done what is inside.

    Raises:
        OSError: If another worker has failed; what fails here is raised as it is.
    """
    failed = True
    try:
        yield
        failed = False
    finally:
        # Not after a lost connection, which there would be once more.
        if workers.are_several and not isinstance(sys.exception(), ConnectionError):
            anywhere = workers.any(failed)[0]
            if anywhere and not failed:
                raise OSError(
                    f"The checkpoint could not be {done} by another worker, which says "
                    "why."
                )


def _write(partial: pathlib.Path, state: Mapping[str, Any], arrays: _Arrays) -> None:
    path = partial / _STATE
    with naming(path), path.open("w", encoding="utf-8") as file:
        json.dump({"state": dict(state), "dtypes": _foreign(arrays)}, file)
    _write_arrays(partial / _ARRAYS, arrays)
    _flush(partial / _STATE)
    _flush(partial / _ARRAYS)


def _write_own(partial: pathlib.Path, index: int, arrays: _Arrays) -> None:
    """Writes what one of several workers has for itself."""
    path = partial / f"worker-{index:05d}.json"
    with naming(path), path.open("w", encoding="utf-8") as file:
        json.dump({"dtypes": _foreign(arrays)}, file)
    _write_arrays(path.with_suffix(".npz"), arrays)
    _flush(path)
    _flush(path.with_suffix(".npz"))


def _write_manifest(partial: pathlib.Path) -> None:
    manifest: dict[str, Any] = {"format": FORMAT}
    manifest |= {p.name: _describe(p) for p in sorted(partial.iterdir())}
    path = partial / _MANIFEST
    with naming(path), path.open("w", encoding="utf-8") as file:
        json.dump(manifest, file)
    _flush(path)
    _flush(partial)


def _write_arrays(path: pathlib.Path, arrays: _Arrays) -> None:
    foreign = _foreign(arrays)
    with naming(path), zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            if name in foreign:
                array = array.view(f"u{array.dtype.itemsize}")
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def _foreign(arrays: _Arrays) -> dict[str, str]:
    """Returns dtypes that NumPy does not know: they would come back as raw bytes."""
    return {
        name: tf.as_dtype(array.dtype).name
        for name, array in arrays.items()
        if array.dtype.kind == "V"
    }


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
    owned = sorted(name for name in manifest if _OWN.fullmatch(name))
    for name in (_STATE, _ARRAYS, *owned):
        expected, found = manifest[name], _describe(path / name)
        if expected != found:
            raise ValueError(f"{name} should have {expected}, found {found}")
    content = _object(path / _STATE)
    state, dtypes = content["state"], content["dtypes"]
    if not isinstance(state, dict) or not isinstance(dtypes, dict):
        raise ValueError(f"{_STATE} should hold two JSON objects")
    arrays = _read_arrays(path / _ARRAYS, dtypes)
    for name in owned:
        if name.endswith(".json"):
            archive = (path / name).with_suffix(".npz")
            arrays |= _read_arrays(archive, _object(path / name)["dtypes"])
    return Checkpoint(path, state, arrays, number)


def _read_arrays(
    path: pathlib.Path, dtypes: Mapping[str, str]
) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    for name, dtype in dtypes.items():
        arrays[name] = arrays[name].view(tf.as_dtype(dtype).as_numpy_dtype)
    return arrays


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
