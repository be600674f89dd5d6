"""Files that appear under their name only when they are complete."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from typing import BinaryIO


@contextlib.contextmanager
def write_atomically(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Opens a file beside `path` and renames it to `path` when the block ends well.

    Raises:
        FileNotFoundError: If the directory of `path` does not exist.
    """
    path = os.path.abspath(os.fspath(path))
    directory, name = os.path.split(path)
    if not os.path.isdir(directory):
        raise FileNotFoundError(f"Cannot write {path}: no directory {directory}.")
    handle, beside = tempfile.mkstemp(prefix=f".{name}.", dir=directory)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(beside, 0o666 & ~mask)  # Temporary files are private.
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.remove(beside)
        raise
