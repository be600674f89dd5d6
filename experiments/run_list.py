"""Lists of training runs: what is done is skipped, what was killed goes on."""

from __future__ import annotations

import gc
import json
import pathlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import keras

from experiments import run_files
from experiments.benchmarks import machine
from experiments.imm.config import check_same_settings
from experiments.imm.row import read_row


class Run(NamedTuple):
    """One run of a list.

    Attributes:
        name: Unique in the list; of its folder and of its row.
        settings: What an earlier run must share to count as the same, as JSON.
        train: Maps a folder to the row of results; goes on with what it finds there.
        clear: Removes what `train` has left in a folder.
    """

    name: str
    settings: dict[str, Any]
    train: Callable[[pathlib.Path], dict[str, Any]]
    clear: Callable[[pathlib.Path], None]


def run_all(
    runs: Sequence[Run], output: pathlib.Path, results: pathlib.Path, resume: bool
) -> list[dict[str, Any]]:
    """Makes the runs that have no row yet, and returns all rows.

    Args:
        runs: The runs, in order.
        output: Their folders are in it.
        results: Rows are `NAME.json` in it.
        resume: Whether rows and folders of earlier runs are used; else they are removed
            first.

    Raises:
        ValueError: If two runs have one name, or files are of other settings.
    """
    names = [run.name for run in runs]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two runs are called {name}: what tells them apart?")
    for run in runs:
        path = results / f"{run.name}.json"
        if not resume:
            path.unlink(missing_ok=True)
            run.clear(output / run.name)
            continue
        found = path if path.exists() else output / run.name / "config.json"
        if found.exists():
            check_same_settings(
                _settings_in(found),
                run.settings,
                str(found),
                "another --output_dir (and --results_dir), or --noresume to start anew",
            )
    # Asked now: what is committed while runs go on is not what they run.
    machine.commit()
    rows = []
    for number, run in enumerate(runs, start=1):
        path = results / f"{run.name}.json"
        done = path.exists()
        state = ": done before" if done else ""
        print(f"[{number}/{len(runs)}] {run.name}{state}", flush=True)
        if done:
            rows.append(read_row(path))
            continue
        row = {**run.train(output / run.name), "settings": run.settings}
        run_files.write_json(path, row)
        rows.append(row)
        # The graphs of a run are of no use to the next.
        keras.backend.clear_session()
        gc.collect()
    return rows


def _settings_in(path: pathlib.Path) -> dict[str, Any]:
    content = json.loads(path.read_text("utf-8"))
    return content.get("settings", content)
