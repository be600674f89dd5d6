"""A file with one JSON object a line, one line an epoch."""

from __future__ import annotations

import json
import math
import os
import pathlib
import time
from collections.abc import Mapping
from typing import Any

import keras

from rlm_tf.checks import check_integer
from rlm_tf.file_errors import naming
from rlm_tf.training.learning_rate import get_learning_rates
from rlm_tf.training.monitor import read_metrics
from rlm_tf.workers import Workers

_REMEDY = "Put the file back, or start anew (resume=False; --noresume)."


class MetricsLog(keras.callbacks.Callback):
    """Writes metrics to a JSONL file, each row once however often a run is resumed.

    The row of an epoch holds `epoch` (from 0 as in Keras' `History`; what is printed
    counts from 1), `learning_rate` (of several parts `learning_rate/<part>`) and the
    epoch's logs. The row of a step also holds `step`, the number of steps of the epoch
    that are done, and the metrics as they stand then. Values that are not finite are
    null. Put it first in `ExactResume(callbacks=...)`: then the learning rate is the
    one that the epoch was trained with.

    Of several workers only the chief writes.

    As one of `ExactResume`'s callbacks it drops, on resuming, the rows that are younger
    than the checkpoint. Otherwise a new run overwrites the file.

    Args:
        path: The file; its folder is created.
        every_steps: Also writes a row whenever so many more steps of an epoch are done;
            None: only at the end of epochs.
        seconds: Whether rows hold `seconds`, the time spent in `fit()` so far without
            what was lost to interruptions; it differs from run to run.

    Raises:
        ValueError: If `every_steps` is not positive. On resuming: if rows are missing
            or damaged.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        every_steps: int | None = None,
        seconds: bool = False,
    ):
        super().__init__()
        if every_steps is not None:
            check_integer("MetricsLog", "every_steps", every_steps, 1)
        self.path = pathlib.Path(path)
        self.every_steps = every_steps
        self.seconds = seconds
        self._rows = 0
        self._epoch = 0
        self._elapsed = 0.0
        self._since = time.monotonic()

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        self._since = time.monotonic()

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._epoch = epoch

    def on_train_batch_begin(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        # Not `on_train_batch_end`: a callback with that hook makes Keras wait for the
        # logs of every step.
        if self.every_steps is None or batch == 0:
            return
        before = batch - self.model.steps_per_execution
        if batch // self.every_steps > before // self.every_steps:
            self._append(
                {"epoch": self._epoch, "step": batch}, read_metrics(self.model)
            )

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._append({"epoch": epoch}, logs or {})

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        self._elapsed += time.monotonic() - self._since
        self._since = time.monotonic()

    def get_state(self) -> dict[str, Any]:
        """Flushes the file to the disk; returns the number of its rows."""
        if self._rows > 0 and self._is_chief:
            with naming(self.path), self.path.open("rb") as file:
                os.fsync(file.fileno())
        elapsed = self._elapsed + time.monotonic() - self._since
        return {"rows": self._rows, "elapsed": elapsed}

    def set_state(self, state: dict[str, Any]) -> None:
        """Drops the rows that were written after `get_state`."""
        self._elapsed = state["elapsed"]
        self._since = time.monotonic()
        self._rows = state["rows"]
        if not self._is_chief:
            return
        rows = _read(self.path, self._rows) if self.path.exists() else []
        if len(rows) < self._rows:
            raise ValueError(
                f"MetricsLog: {self.path} has {len(rows)} rows, the checkpoint was "
                f"written after row {self._rows}. {_REMEDY}"
            )
        if self.path.exists():
            partial = self.path.with_name(self.path.name + ".partial")
            text = "".join(json.dumps(row) + "\n" for row in rows)
            with naming(partial):
                partial.write_text(text, encoding="utf-8")
            os.replace(partial, self.path)

    def _append(self, keys: Mapping[str, int], logs: Mapping[str, Any]) -> None:
        row: dict[str, Any] = {
            **keys,
            **_learning_rates(self.model),
            **{name: float(value) for name, value in logs.items()},
        }
        if self.seconds:
            elapsed = self._elapsed + time.monotonic() - self._since
            row["seconds"] = round(elapsed, 3)
        row = {
            name: value if math.isfinite(value) else None for name, value in row.items()
        }
        if self._is_chief:
            self._write(row)
        self._rows += 1

    def _write(self, row: Mapping[str, Any]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        mode = "a" if self._rows > 0 else "w"
        with naming(self.path), self.path.open(mode, encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    @property
    def _is_chief(self) -> bool:
        return Workers(self.model.distribute_strategy).is_chief


def read_metrics_log(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Returns the rows of a file of `MetricsLog`; not a last line cut short by a kill.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is damaged; names file and line.
    """
    path = pathlib.Path(path)
    if not path.exists():
        raise FileNotFoundError(f"read_metrics_log: there is no file {path}.")
    return _read(path)


def _read(path: pathlib.Path, most: int | None = None) -> list[dict[str, Any]]:
    """Returns the first rows of a file."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder, not a file of metrics. {_REMEDY}")
    # What follows the last newline is a line that was never finished.
    lines = path.read_bytes().split(b"\n")[:-1][:most]
    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
            whole = isinstance(row["epoch"], int) and all(map(_is_number, row.values()))
        except (ValueError, KeyError, TypeError, IndexError, RecursionError):
            whole = False
        if not whole:
            raise ValueError(
                f"{path}, line {number}: expected a JSON object of numbers with an "
                f"`epoch`, found {line[:40]!r}. {_REMEDY}"
            )
        rows.append(row)
    return rows


def _learning_rates(model: keras.Model) -> dict[str, float]:
    return {
        f"learning_rate/{part}" if part else "learning_rate": rate
        for part, rate in get_learning_rates(model).items()
    }


def _is_number(value: Any) -> bool:
    return value is None or isinstance(value, int | float)
