"""What the benchmark ran on, and how much else ran there."""

from __future__ import annotations

import functools
import importlib.metadata
import os
import pathlib
import platform
import subprocess
import time
from typing import Any

from rlm_tf.command_line.wording import number_of

_PACKAGES = ("tensorflow", "keras", "numpy", "torch", "nltk")
_STATISTICS = pathlib.Path("/proc/stat")


def environment() -> dict[str, Any]:
    """Returns machine, threads and versions."""
    import tensorflow as tf

    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    limit = tf.config.threading.get_intra_op_parallelism_threads()
    return {
        "machine": f"{_processor()}, {number_of('core', cores())}",
        "threads": {"tensorflow": limit or cores(), "torch": cores()},
        "software": versions,
        "commit": commit(),
    }


def cores() -> int:
    """Returns the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@functools.cache
def commit() -> str | None:
    """Returns the commit of this code, `-dirty` if files differ; None without git.

    The first call decides: what is edited while a program runs is not what it runs.
    """
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    here = pathlib.Path(__file__).parent
    try:
        done = subprocess.run(
            command, cwd=here, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


class OtherPrograms:
    """Measures how many cores other programs kept busy since it was created."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._busy = _busy_seconds()
        self._own = _own_seconds()

    def cores(self) -> float | None:
        """Returns the mean number of cores; None where the system does not tell.

        The readings are taken one after another and count whole ticks of the clock, so
        that the value may be off by a tick or two an interval.
        """
        busy = _busy_seconds()
        if busy is None or self._busy is None:
            return None
        others = (busy - self._busy) - (_own_seconds() - self._own)
        cores = others / (time.perf_counter() - self._start)
        return min(max(cores, 0.0), float(os.cpu_count() or 1))


def _busy_seconds() -> float | None:
    """Processor time of all programs since the start of the machine."""
    try:
        fields = _STATISTICS.read_text().split("\n", 1)[0].split()
    except OSError:
        return None
    user, nice, system = map(int, fields[1:4])
    return (user + nice + system) / os.sysconf("SC_CLK_TCK")


def _own_seconds() -> float:
    """Processor time of this process and of those it has started and awaited."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _processor() -> str:
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
