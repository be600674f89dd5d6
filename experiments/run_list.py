"""Lists of training runs: what is done is skipped, what was killed goes on."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from experiments import run_files
from experiments.benchmarks import machine
from experiments.imm.config import check_same_settings
from experiments.imm.row import read_row
from rlm_tf.training import TrainingDivergedError, released_graphs


class Run(NamedTuple):
    """One run of a list.

    Attributes:
        name: Unique in the list; of its folder and of its row.
        settings: What an earlier run must share to count as the same, as JSON.
        prepare: Builds what is needed, and writes nothing.
        train: Maps that and a folder to the row of results; goes on with what it finds
            there.
    """

    name: str
    settings: dict[str, Any]
    prepare: Callable[[], Any]
    train: Callable[[Any, pathlib.Path], dict[str, Any]]


def run_all(
    runs: Sequence[Run], output: pathlib.Path, results: pathlib.Path, resume: bool
) -> list[dict[str, Any]]:
    """Makes the runs that have no row yet, and returns all rows.

    Args:
        runs: The runs, in order.
        output: Their folders are in it.
        results: Rows are `NAME.json` in it.
        resume: Whether rows and folders of earlier runs are used; else they are removed
            as soon as the first run is prepared, which finds most mistakes.

    Raises:
        ValueError: If two runs have one name, or files are of other settings.
        TrainingDivergedError: After the other runs, if one has diverged.
    """
    names = [run.name for run in runs]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"the run {name} is named twice.")
    if resume:
        for run in runs:
            _check_earlier(run, output, results)
    # Asked now: what is committed while runs go on is not what they run.
    machine.commit()
    rows, anew = [], not resume
    diverged: list[str] = []
    for number, run in enumerate(runs, start=1):
        path = results / f"{run.name}.json"
        place = f"[{number}/{len(runs)}] {run.name}"
        if path.exists() and not anew:
            print(f"{place}: done before", flush=True)
            rows.append(read_row(path))
            continue
        print(place, flush=True)
        # The graphs of a run are of no use to the next.
        with released_graphs():
            prepared = run.prepare()
            if anew:
                _forget_earlier(runs, output, results)
                anew = False
            try:
                found = run.train(prepared, output / run.name)
            except TrainingDivergedError as error:
                diverged.append(f"{run.name}: {error}")
                print(f"{place}: {error}", flush=True)
            else:
                row = {**found, "name": run.name, "settings": run.settings}
                run_files.write_json(path, row)
                rows.append(row)
            del prepared
    if diverged:
        raise TrainingDivergedError("\n".join(diverged))
    return rows


def finished_rows(runs: Sequence[Run], results: pathlib.Path) -> list[dict[str, Any]]:
    """Returns the rows of the runs that are done, in order."""
    paths = [results / f"{run.name}.json" for run in runs]
    return [read_row(path) for path in paths if path.exists()]


def _check_earlier(run: Run, output: pathlib.Path, results: pathlib.Path) -> None:
    """Raises ValueError where files of another run would be taken for this one's."""
    row, settings = results / f"{run.name}.json", output / run.name / "config.json"
    where = row if row.exists() else settings
    if where.exists():
        check_same_settings(
            _settings_in(where),
            run.settings,
            str(where),
            "another --output_dir (and --results_dir), or --noresume to start anew",
        )


def _settings_in(path: pathlib.Path) -> dict[str, Any]:
    content = read_row(path)
    if "settings" in content:
        return content["settings"]
    if "config" in content:
        # A row of `experiments.imm_lm` before rows had settings.
        digest = content.get("corpus", {}).get("text_sha256")
        return {**content["config"], "text_sha256": digest}
    return content


def _forget_earlier(
    runs: Sequence[Run], output: pathlib.Path, results: pathlib.Path
) -> None:
    """Removes what the runs have left, so that a kill leaves nothing to be mistaken."""
    for run in runs:
        (results / f"{run.name}.json").unlink(missing_ok=True)
        run_files.clear_run(output / run.name)
