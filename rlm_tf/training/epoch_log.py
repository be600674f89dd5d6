"""Files of a temporal ensemble: means by example, and a log of the epoch."""

from __future__ import annotations

import os
import pathlib
import threading
from collections.abc import Callable

import numpy as np

# Records of a log that are read at once.
_CHUNK = 8192


class EpochLog:
    """Means by epoch, and what is predicted in the epoch that is going on.

    `means-E.npy` has the means before epoch E, `log-E.bin` the records of epoch E, each
    an id and K probabilities. Those of the epoch before stay until the next one ends,
    so that a checkpoint from before its end can be gone on from.

    Args:
        folder: Where; made if it is not there.
        num_examples: N.
        num_classes: K.

    Raises:
        ValueError: If its means are of another shape.
    """

    def __init__(
        self, folder: pathlib.Path, num_examples: int, num_classes: int
    ) -> None:
        self.folder = folder
        self._shape = (num_examples, num_classes)
        self._record = np.dtype(
            [("id", np.int64), ("probs", np.float32, (num_classes,))]
        )
        self._lock = threading.Lock()
        self._epoch = 0
        self._begun = False
        self._means: np.ndarray | None = None
        folder.mkdir(parents=True, exist_ok=True)
        for file in sorted(folder.glob("means-*.npy")):
            found = np.load(file, mmap_mode="r").shape
            if found != self._shape:
                raise ValueError(
                    f"TemporalEnsemble: {file} has the shape {found}, expected "
                    f"{self._shape}: it is of other examples or classes."
                )

    def means_of(self, ids: np.ndarray, epoch: int) -> np.ndarray:
        """Returns the means before an epoch, `[B, K]`."""
        with self._lock:
            if int(epoch) == 0:
                return np.zeros([len(ids), self._shape[1]], np.float32)
            if self._means is None or self._epoch != int(epoch):
                self._open(int(epoch))
            assert self._means is not None
            return np.asarray(self._means[ids])

    def append(self, ids: np.ndarray, probs: np.ndarray, epoch: int) -> np.int64:
        """Writes records behind those of an epoch; returns how many.

        The first ones of a process that goes on from nothing begin anew.
        """
        records = np.empty(len(ids), self._record)
        records["id"], records["probs"] = ids, probs
        with self._lock:
            if not self._begun:
                if int(epoch):
                    raise ValueError(
                        "TemporalEnsemble: call resume() before update() where a "
                        f"checkpoint is gone on from (epoch {int(epoch) + 1})."
                    )
                self._cut(0, 0)
            with open(self._log(int(epoch)), "ab") as file:
                file.write(records.tobytes())
        return np.int64(len(ids))

    def end(
        self,
        epoch: int,
        length: int,
        seen: np.ndarray,
        share: np.ndarray,
        add: Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], None],
    ) -> None:
        """Writes the means before the next epoch.

        Args:
            epoch: The one that ends.
            length: Of its log, in records.
            seen: `[N]`, how often each example was seen.
            share: `[N]`, the weight of the epoch in the new mean.
            add: Adds sums of a part of the examples to their means, in place.
        """
        self._check(epoch, length)
        beside = self.folder / ".means"
        sums = np.lib.format.open_memmap(
            beside, mode="w+", dtype=np.float32, shape=self._shape
        )
        for start in range(0, length, _CHUNK):
            records = np.fromfile(
                self._log(epoch),
                self._record,
                min(_CHUNK, length - start),
                offset=start * self._record.itemsize,
            )
            np.add.at(sums, records["id"], records["probs"])
        places = np.arange(self._shape[0])
        for start in range(0, len(places), _CHUNK):
            part = slice(start, start + _CHUNK)
            means = self.means_of(places[part], epoch)
            add(means, sums[part], seen[part], share[part])
            sums[part] = means
        sums.flush()
        del sums
        os.replace(beside, self._file(epoch + 1))
        for old in (self._file(epoch - 1), self._log(epoch - 1)):
            old.unlink(missing_ok=True)
        self._open(epoch + 1)
        # What an earlier process wrote of it before it was killed.
        self._log(epoch + 1).unlink(missing_ok=True)

    def resume(self, epoch: int, length: int) -> None:
        """Cuts the log of an epoch back to a length, and forgets later ones."""
        self._check(epoch, length)
        with self._lock:
            self._cut(epoch, length)

    # === Parts ===

    def _cut(self, epoch: int, length: int) -> None:
        log = self._log(epoch)
        if log.exists():
            os.truncate(log, length * self._record.itemsize)
        for file in (*self.folder.glob("means-*.npy"), *self.folder.glob("log-*.bin")):
            if int(file.stem.rpartition("-")[2]) > epoch:
                file.unlink()
        self._open(epoch)
        self._begun = True

    def _open(self, epoch: int) -> None:
        self._epoch = epoch
        self._means = None
        if epoch:
            self._means = np.load(self._file(epoch), mmap_mode="r")

    def _check(self, epoch: int, length: int) -> None:
        log = self._log(epoch)
        found = log.stat().st_size // self._record.itemsize if log.exists() else 0
        if found < length or (epoch and not self._file(epoch).exists()):
            raise ValueError(
                f"TemporalEnsemble: {self.folder} ends before the checkpoint: epoch "
                f"{epoch + 1} must have {length:,} predictions, found {found:,}. Give "
                "the folder that the checkpoint was written with, or train anew."
            )

    def _file(self, epoch: int) -> pathlib.Path:
        return self.folder / f"means-{epoch}.npy"

    def _log(self, epoch: int) -> pathlib.Path:
        return self.folder / f"log-{epoch}.bin"
