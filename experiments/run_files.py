"""Files and progress of runs, shared by the binaries."""

from __future__ import annotations

import json
import os
import pathlib
import time
from typing import Any

import keras


def write_json(path: pathlib.Path, content: Any) -> None:
    """Writes JSON beside the file and renames it, so that no reader sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(json.dumps(content, indent=1) + "\n", "utf-8")
    beside.replace(path)


def cpu_count() -> int:
    """Returns the number of cores this process may use."""
    return len(os.sched_getaffinity(0))


class EpochProgress(keras.callbacks.Callback):
    """Prints one line an epoch: where training stands and when it will be over."""

    def __init__(self, name: str, epochs: int):
        super().__init__()
        self.name = name
        self.epochs = epochs
        self._began = time.monotonic()
        self._first: int | None = None

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if self._first is None:
            self._first = epoch
            self._began = time.monotonic()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        done = epoch - (self._first or 0) + 1
        each = (time.monotonic() - self._began) / done
        parts = [f"{self.name}: epoch {epoch + 1}/{self.epochs}"]
        for key in ("perplexity", "val_perplexity", "imm"):
            if logs and key in logs:
                parts.append(f"{key} {logs[key]:.2f}")
        parts.append(f"{each:.1f} s/epoch")
        parts.append(f"{(self.epochs - epoch - 1) * each / 60:.1f} min left")
        print("  ".join(parts), flush=True)
