"""How many seconds each file of tests may take, on two quiet cores."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

FILE = pathlib.Path(__file__).with_name("budgets.json")
# A budget is what was measured, times this: machines and neighbours differ.
_ROOM = 1.5
_LEAST = 3.0


def seconds_by_file(reports: Iterable[Iterable[Any]]) -> dict[str, float]:
    """Returns the seconds of each file, fixtures included.

    Args:
        reports: Lists of what pytest reports; what has no duration is left out.
    """
    seconds: dict[str, float] = {}
    for report in (report for some in reports for report in some):
        if hasattr(report, "duration") and hasattr(report, "nodeid"):
            file = report.nodeid.partition("::")[0]
            seconds[file] = seconds.get(file, 0.0) + report.duration
    return seconds


def exceeded(taken: Mapping[str, float]) -> list[str]:
    """Returns a line for each file that took more than its budget, or has none."""
    granted = json.loads(FILE.read_text(encoding="utf-8"))
    return [
        f"{file} took {seconds:.0f} seconds, its budget is "
        f"{granted.get(file, _LEAST):g} (tests/budgets.json)."
        for file, seconds in sorted(taken.items())
        if seconds > granted.get(file, _LEAST)
    ]


def write(taken: Mapping[str, float]) -> None:
    """Writes budgets with some room; files that need little have none of their own."""
    granted = {
        file: round(_ROOM * seconds)
        for file, seconds in sorted(taken.items())
        if _ROOM * seconds > _LEAST
    }
    FILE.write_text(json.dumps(granted, indent=2) + "\n", encoding="utf-8")
