"""Errors of the file system that say which file they are about."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator

_FULL = (errno.ENOSPC, errno.EDQUOT)


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


@contextlib.contextmanager
def full_disk_named(path: str | os.PathLike[str], what: str) -> Iterator[None]:
    """Makes one kind of error of a full disk, TensorFlow's or Python's.

    Args:
        path: What was to be written, for the message.
        what: It is, for the message: "the SavedModel".

    Raises:
        OSError: If the disk, or a user's share of it, is full.
    """
    # Who only reads files, or is told what is wrong with one, does not wait for it.
    import tensorflow as tf

    try:
        yield
    except (OSError, tf.errors.OpError) as error:
        for code in _FULL:
            reason = os.strerror(code)
            # TensorFlow's errors have no number.
            if getattr(error, "errno", None) == code or reason in str(error):
                message = f"{reason}, {what} was not written"
                raise OSError(code, message, os.fspath(path)) from error
        raise


def one_line(error: Exception, most: int = 160) -> str:
    """Returns the kind of an error and what it says, in one line of bounded length."""
    text = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(".")
    return text if len(text) <= most else text[:most] + "..."
