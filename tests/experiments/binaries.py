"""Runs binaries for tests as `python -m` does, but starts sooner."""

from __future__ import annotations

import functools
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parents[2]


@functools.cache
def _server() -> subprocess.Popen[str]:
    """The fork server of this process; it ends with it, when its input ends."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.experiments.fork_server"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def run_binary(
    name: str, *flags: object, check: bool = False, package: str = "experiments"
) -> subprocess.CompletedProcess[str]:
    """Runs a module of `experiments`, or of another package, to its end.

    One that hangs is ended after ten minutes, with the exit status of a signal.

    Raises:
        AssertionError: If `check` is true and the binary fails.
    """
    arguments = [str(flag) for flag in flags]
    with tempfile.TemporaryDirectory() as folder:
        printed, errors = (pathlib.Path(folder, stream) for stream in ("out", "err"))
        request = {
            "name": f"{package}.{name}",
            "flags": arguments,
            "stdout": str(printed),
            "stderr": str(errors),
        }
        server = _server()
        assert server.stdin is not None and server.stdout is not None
        server.stdin.write(json.dumps(request) + "\n")
        server.stdin.flush()
        status = server.stdout.readline()
        assert status, "the fork server has ended"
        done = subprocess.CompletedProcess(
            [name, *arguments],
            int(status),
            printed.read_text(),
            errors.read_text(),
        )
    if check:
        assert done.returncode == 0, done.stderr[-3000:]
    return done
