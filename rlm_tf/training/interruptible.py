"""Ctrl-C in training: a checkpoint first."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any

from rlm_tf.training.resume import ExactResume


@contextlib.contextmanager
def interruptible(saver: ExactResume) -> Iterator[None]:
    """Lets Ctrl-C end `fit()` with a checkpoint; a second one ends it at once.

    Within it, `fit()` raises KeyboardInterrupt once the checkpoint is written.

    Args:
        saver: Among the callbacks of that `fit()`.
    """
    before = signal.getsignal(signal.SIGINT)
    in_main = threading.current_thread() is threading.main_thread()
    if before is not signal.default_int_handler or not in_main:
        # Somebody else decides, or ignores it; only the main thread handles signals.
        yield
        return

    def interrupt(*_: Any) -> None:
        signal.signal(signal.SIGINT, before)
        saver.interrupt()

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        late = signal.getsignal(signal.SIGINT) is before
        signal.signal(signal.SIGINT, before)
    if late:
        # It came after the last epoch.
        raise KeyboardInterrupt
