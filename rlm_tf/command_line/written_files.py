"""Files that no reader sees half of."""

from __future__ import annotations

import os
import pathlib

from rlm_tf.file_errors import naming


def write_beside(path: pathlib.Path, content: bytes) -> None:
    """Writes a file beside its place and renames it; makes its folder.

    Raises:
        OSError: If it cannot be written; names it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with naming(path):
            beside.write_bytes(content)
            beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
