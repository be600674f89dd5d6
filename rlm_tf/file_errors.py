"""Errors of the file system that say which file they are about."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator


@contextlib.contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Puts a file's name into an `OSError` that names none.

    `open` names the file; writing, flushing and closing do not, and that is where a
    full disk shows: "[Errno 28] No space left on device".
    """
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error
