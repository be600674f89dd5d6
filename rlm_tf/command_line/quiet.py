"""Keeps TensorFlow's start-up messages off the screen."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import tempfile
import types
from collections.abc import Iterator

import absl.logging


def silence_tensorflow() -> None:
    """Imports TensorFlow without its start-up messages; call it before other imports.

    `TF_CPP_MIN_LOG_LEVEL` governs only what is logged once the native libraries are
    up. While they are loaded, TensorFlow 2.21 writes "All log messages before
    absl::InitializeLog()" and more to standard error, whatever is set: only there, file
    descriptor 2 leads to a temporary file, which is shown if the import fails. Errors
    alone pass what TensorFlow logs from Python.

    Nothing is hidden from a person who has set `TF_CPP_MIN_LOG_LEVEL` below 3, and
    what this library has to say (a checkpoint that is damaged, a loss that is not
    finite) is always shown. Ctrl-C while the program imports is one line, too.
    """
    sys.excepthook = _show
    # absl is going to give the root logger the verbosity that is set below, and would
    # put a line of the source before what is said.
    logging.getLogger("rlm_tf").setLevel(logging.INFO)
    absl.logging.get_absl_handler().setFormatter(_Plain())
    if int(os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3") or 0) < 3:
        return
    absl.logging.set_verbosity(absl.logging.ERROR)
    if "tensorflow" in sys.modules:
        return
    with native_silence():
        import tensorflow  # noqa: F401


class _Plain(logging.Formatter):
    """What is said, with a word before it where it is a warning or an error."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        if record.levelno <= logging.INFO:
            return text
        return f"{record.levelname.lower()}: {text}"


@contextlib.contextmanager
def native_silence() -> Iterator[None]:
    """Keeps what native libraries write to standard error off the screen.

    File descriptor 2 leads to a temporary file meanwhile, which is shown if there is an
    error. For a program's main thread.
    """
    sys.stderr.flush()
    terminal = os.dup(2)
    with tempfile.TemporaryFile() as messages:
        os.dup2(messages.fileno(), 2)
        try:
            yield
        except Exception:
            messages.seek(0)
            os.write(terminal, messages.read())
            raise
        finally:
            sys.stderr.flush()
            os.dup2(terminal, 2)
            os.close(terminal)


def _show(
    kind: type[BaseException], error: BaseException, trace: types.TracebackType | None
) -> None:
    if issubclass(kind, KeyboardInterrupt):
        print("interrupted.", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)
