"""Rows of the benchmark in a folder, those of older versions, too.

Older versions wrote one file, `benchmark.json`: the preset, and the rows by name.
"""

from __future__ import annotations

import pathlib

from experiments.benchmark.preset import PRESETS, row_names
from experiments.kit.rows import Row, Rows
from rlm_tf.command_line import json_files

OLD_FILE = "benchmark.json"
NEEDS = (
    "preset",
    "lines",
    "numbers",
    "environment.machine",
    "environment.software",
    "seconds",
    "other_programs_cores",
    "inputs",
)
_REMEDY = "remove it, and it is measured again"


def read_rows(rows: Rows) -> dict[str, Row]:
    """Returns the rows of a folder by name, in the table's order.

    Raises:
        ValueError: If one is damaged.
    """
    found = _old_rows(rows.folder / OLD_FILE)
    known = row_names(*PRESETS.values())
    for name in known:
        if name in rows:
            found[name] = rows.read(name, NEEDS, _REMEDY)
    return {name: found[name] for name in known if name in found}


def _old_rows(path: pathlib.Path) -> dict[str, Row]:
    try:
        content = json_files.read_json(path, _REMEDY, ("preset", "rows"))
    except FileNotFoundError:
        return {}
    rows = content["rows"]
    if not isinstance(rows, dict) or not all(
        isinstance(r, dict) for r in rows.values()
    ):
        raise ValueError(f"{path} is damaged (expected rows by name); {_REMEDY}.")
    found = {name: {"preset": content["preset"], **row} for name, row in rows.items()}
    for name, row in found.items():
        json_files.check_has(row, NEEDS, f"{path} (row {name})", _REMEDY)
    return found
