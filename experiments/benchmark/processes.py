"""Measurements in processes of their own, and the memory of a process."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import statistics
import subprocess
import sys
from typing import Any

STATUS = pathlib.Path("/proc/self/status")


def said_of(point: Any) -> dict[str, Any]:
    """Returns the fields of a point that a row keeps: not where the data are."""
    fields = dataclasses.asdict(point)
    return {name: value for name, value in fields.items() if name != "data_dir"}


def in_a_process(module: str, point: Any) -> dict[str, float]:
    """Runs `python -m MODULE POINT` and returns the JSON object that it prints last.

    Args:
        module: Takes a point as JSON.
        point: A dataclass.

    Raises:
        RuntimeError: If the process fails, with the last line of what it said.
    """
    root = str(pathlib.Path(__file__).parents[2])
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    result = subprocess.run(
        [sys.executable, "-m", module, json.dumps(dataclasses.asdict(point))],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        last = (result.stderr.strip() or "no message").splitlines()[-1]
        raise RuntimeError(
            f"memory: {point} ended with status {result.returncode}: {last}"
        )
    return json.loads(result.stdout.splitlines()[-1])


def resident(field: str) -> float:
    """Returns an entry of the process's status in MiB: VmRSS now, VmHWM at its peak.

    `ru_maxrss` would not do: a new process inherits it from the one that started it.

    Raises:
        RuntimeError: If there is no such entry.
    """
    for line in STATUS.read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"{STATUS}: no entry {field}.")


def mebibytes(values: list[float]) -> str:
    """Returns the median and, of several values, the range."""
    middle = f"{statistics.median(values):,.0f} MiB"
    if len(values) == 1:
        return middle
    return f"{middle} ({min(values):,.0f} to {max(values):,.0f})"
