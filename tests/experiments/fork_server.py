"""Runs binaries in forks of a process that has imported TensorFlow before.

Most of the time of a start is that import. The server imports, and executes nothing, so
that a fork is what a new process would be; `tests.experiments.binaries` asks it. It
reads one JSON object a line, `{"name", "flags", "stdout", "stderr"}`, the latter two
paths of files, and answers each with the exit status.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import signal
import sys
import traceback

from rlm_tf.command_line.quiet import silence_tensorflow

silence_tensorflow()

# Imported for the forks. TensorFlow Probability imports its parts when they are used.
import gymnasium  # noqa: E402, F401
import keras_tuner  # noqa: E402, F401
import matplotlib.pyplot  # noqa: E402, F401
import scipy.stats  # noqa: E402, F401
import sklearn.datasets  # noqa: E402, F401
import tensorflow_text  # noqa: E402, F401
from tensorflow_probability import distributions  # noqa: E402

_LOADED = distributions.Distribution

# Seconds after which a binary that hangs is ended.
_LIMIT = 600


def _run(name: str, flags: list[str], stdout: str, stderr: str) -> int:
    """Runs a module as `python -m` does; returns the exit status of the fork."""
    signal.alarm(_LIMIT)
    for descriptor, path in ((1, stdout), (2, stderr)):
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(opened, descriptor)
    sys.argv = [name, *flags]
    try:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    except SystemExit as exit_:
        if isinstance(exit_.code, str):
            print(exit_.code, file=sys.stderr)
            return 1
        return exit_.code or 0
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def main() -> None:
    # Forks would collect what was imported again and again, and copy it by that.
    gc.collect()
    gc.freeze()
    # As in tests/conftest.py.
    gc.set_threshold(20_000, 20, 20)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            status = _run(**json.loads(line))
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
