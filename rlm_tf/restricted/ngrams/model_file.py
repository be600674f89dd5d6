"""Standalone files of back-off models: NumPy archives that hold the configuration."""

from __future__ import annotations

import dataclasses
import json
import os
import zipfile
import zlib
from typing import Any

import numpy as np

from rlm_tf.restricted.ngrams.atomic_file import write_atomically
from rlm_tf.restricted.ngrams.backoff_tables import BackoffLevel, BackoffTables

_FIELDS = tuple(field.name for field in dataclasses.fields(BackoffLevel))


def write_tables(
    path: str | os.PathLike[str], description: dict[str, Any], tables: BackoffTables
) -> None:
    """Writes tables and a JSON description; the file appears when it is complete."""
    header = np.frombuffer(json.dumps(description).encode(), np.uint8)
    arrays: dict[str, Any] = {"description": header, "base": tables.base}
    for m, level in enumerate(tables.levels, start=1):
        arrays |= {f"{name}_{m}": getattr(level, name) for name in _FIELDS}
    with write_atomically(path) as file:
        np.savez(file, **arrays)


def read_tables(
    path: str | os.PathLike[str], class_name: str
) -> tuple[dict[str, Any], BackoffTables]:
    """Reads what `write_tables` wrote.

    Args:
        path: The file.
        class_name: What the description must give as its `class`.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is damaged, or no file of `class_name`.
    """
    name = os.fspath(path)
    problem = f"{name}: expected a file that {class_name}.save wrote; "
    with open(name, "rb") as file:
        try:
            archive = np.load(file, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise ValueError("found a single array")
            arrays = {key: archive[key] for key in archive.files}
            description = json.loads(arrays["description"].tobytes())
            found, count = description["class"], description["config"]["order"] - 1
            levels = [
                BackoffLevel(**{field: arrays[f"{field}_{m}"] for field in _FIELDS})
                for m in range(1, count + 1)
            ]
            base = arrays["base"]
        except (
            OSError,
            EOFError,
            KeyError,
            TypeError,
            ValueError,
            NotImplementedError,
            zipfile.BadZipFile,
            zlib.error,
        ) as error:
            raise ValueError(f"{problem}it is damaged or foreign ({error}).") from error
    if found != class_name:
        raise ValueError(f"{problem}found one of {found}.")
    return description, BackoffTables(base, levels)
