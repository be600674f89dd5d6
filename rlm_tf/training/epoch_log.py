"""Files of a temporal ensemble: means by example, and a log of the epoch."""

from __future__ import annotations

import os
import pathlib
import shutil
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

# Records of a log that are read at once.
_CHUNK = 8192


class EpochLog:
    """Means by epoch, and what is predicted in the epoch that is going on.

    A place is a run and an epoch, `[2]`. Each run has a folder of its own, in which
    `means-E.npy` has the means before epoch E and `log-E.bin` the records of epoch E,
    each an id and what was predicted. Those of the epoch before stay until the next one
    ends, so that a checkpoint from before its end can be gone on from.

    Args:
        owner: Whose files they are, for messages.
        folder: Where.
        num_examples: N.
        value: Of what is predicted of an example and of its mean: K float32, or a
            record with fields.

    Raises:
        ValueError: If it has means of another shape.
    """

    def __init__(
        self, owner: str, folder: pathlib.Path, num_examples: int, value: Any
    ) -> None:
        self.folder = folder
        self._owner = owner
        self._num_examples = num_examples
        self.value = np.dtype(value)
        self._record = np.dtype([("id", np.int64), ("value", self.value)])
        self._lock = threading.Lock()
        self._opened: tuple[int, int] | None = None
        self._means = self._zeros(0)
        for file in sorted(folder.glob("run-*/means-*.npy")):
            means = np.load(file, mmap_mode="r")
            found, expected = (means.shape, means.dtype), self._layout()
            if found != expected:
                raise ValueError(
                    f"{owner}: {file} has the shape {_said(*found)}, expected "
                    f"{_said(*expected)}: it is of other examples or classes."
                )

    def means_of(self, ids: np.ndarray, place: np.ndarray) -> np.ndarray:
        """Returns the means before an epoch, a row an id."""
        run, epoch = map(int, place)
        if epoch == 0:
            return self._zeros(len(ids))
        with self._lock:
            if self._opened != (run, epoch):
                self._means = np.load(self._file(run, epoch), mmap_mode="r")
                self._opened = (run, epoch)
            return np.asarray(self._means[ids])

    def append(
        self, ids: np.ndarray, values: np.ndarray, place: np.ndarray
    ) -> np.int64:
        """Writes records behind those of an epoch; returns how many."""
        records = np.empty(len(ids), self._record)
        records["id"], records["value"] = ids, values
        log = self._log(*map(int, place))
        with self._lock:
            log.parent.mkdir(parents=True, exist_ok=True)
            with open(log, "ab") as file:
                file.write(records.tobytes())
        return np.int64(len(ids))

    def end(
        self,
        place: np.ndarray,
        length: int,
        collect: Callable[[np.ndarray, np.ndarray, np.ndarray], None],
        add: Callable[[np.ndarray, np.ndarray, slice], None],
    ) -> None:
        """Writes the means before the next epoch.

        Args:
            place: The epoch that ends.
            length: Of its log, in records.
            collect: Puts values of some ids into those of all, in place.
            add: Adds what was collected of a part of the examples to their means, in
                place.
        """
        run, epoch = map(int, place)
        self._check(run, epoch, length)
        self._own(run).mkdir(parents=True, exist_ok=True)
        beside = self._own(run) / ".means"
        shape, dtype = self._layout()
        epochs = np.lib.format.open_memmap(beside, mode="w+", dtype=dtype, shape=shape)
        for start in range(0, length, _CHUNK):
            records = np.fromfile(
                self._log(run, epoch),
                self._record,
                min(_CHUNK, length - start),
                offset=start * self._record.itemsize,
            )
            collect(epochs, records["id"], records["value"])
        ids = np.arange(self._num_examples)
        for start in range(0, len(ids), _CHUNK):
            part = slice(start, start + _CHUNK)
            means = self.means_of(ids[part], place)
            add(means, epochs[part], part)
            epochs[part] = means
        epochs.flush()
        del epochs
        os.replace(beside, self._file(run, epoch + 1))
        for old in (self._file(run, epoch - 1), self._log(run, epoch - 1)):
            old.unlink(missing_ok=True)
        # What a process wrote of it before it was killed.
        self._log(run, epoch + 1).unlink(missing_ok=True)
        self._remove_others(run)

    def resume(self, place: np.ndarray, length: int) -> None:
        """Cuts the log of an epoch back to a length, and forgets later epochs."""
        run, epoch = map(int, place)
        self._check(run, epoch, length)
        with self._lock:
            log = self._log(run, epoch)
            if log.exists():
                os.truncate(log, length * self._record.itemsize)
            for file in self._own(run).glob("*-*"):
                if int(file.stem.rpartition("-")[2]) > epoch:
                    file.unlink()
            self._opened = None
        self._remove_others(run)

    # === Parts ===

    def _zeros(self, count: int) -> np.ndarray:
        return np.zeros(count, self.value)

    def _layout(self) -> tuple[tuple[int, ...], np.dtype]:
        """Returns the shape and type of an array of all means, as NumPy has them."""
        empty = self._zeros(0)
        return (self._num_examples, *empty.shape[1:]), empty.dtype

    def _check(self, run: int, epoch: int, length: int) -> None:
        log = self._log(run, epoch)
        found = log.stat().st_size // self._record.itemsize if log.exists() else 0
        if found < length or (epoch and not self._file(run, epoch).exists()):
            raise ValueError(
                f"{self._owner}: {self.folder} ends before the checkpoint: epoch "
                f"{epoch + 1} must have {length:,} predictions, found {found:,}. Give "
                "the folder that the checkpoint was written with, or train anew."
            )

    def _remove_others(self, run: int) -> None:
        for folder in self.folder.glob("run-*"):
            if folder != self._own(run):
                shutil.rmtree(folder)

    def _own(self, run: int) -> pathlib.Path:
        return self.folder / f"run-{run:016x}"

    def _file(self, run: int, epoch: int) -> pathlib.Path:
        return self._own(run) / f"means-{epoch}.npy"

    def _log(self, run: int, epoch: int) -> pathlib.Path:
        return self._own(run) / f"log-{epoch}.bin"


def _said(shape: tuple[int, ...], dtype: np.dtype) -> str:
    fields = "" if dtype.fields is None else f" of {dtype}"
    return f"{shape}{fields}"
