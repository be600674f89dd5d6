"""Lists of training runs: what is done is skipped, what was killed goes on."""

from __future__ import annotations

import contextlib
import pathlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from experiments.kit import machine, run_files, run_workers
from experiments.kit.rows import Rows
from rlm_tf.command_line import run_lock
from rlm_tf.command_line.json_files import read_json, with_nulls
from rlm_tf.command_line.same_settings import check_same_settings
from rlm_tf.training import TrainingDivergedError, released_graphs


class Run(NamedTuple):
    """One run of a list.

    Attributes:
        name: Unique in the list; of its folder and of its row.
        settings: What an earlier run must share to count as the same, as JSON.
        prepare: Builds what is needed, and writes nothing.
        train: Maps that and a folder to the row of results; goes on with what it finds
            there.
        needs: What its row must have to be reported.
    """

    name: str
    settings: dict[str, Any]
    prepare: Callable[[], Any]
    train: Callable[[Any, pathlib.Path], dict[str, Any]]
    needs: Sequence[str] = ()


def by_name(runs: Sequence[Run]) -> dict[str, Run]:
    """Returns runs by their names.

    Raises:
        ValueError: If two have one name.
    """
    found = {run.name: run for run in runs}
    if len(found) < len(runs):
        names = [run.name for run in runs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the run {twice} is named twice.")
    return found


def run_all(
    runs: Sequence[Run], output: pathlib.Path, results: Rows, resume: bool
) -> list[dict[str, Any]]:
    """Makes the runs that have no row yet, and returns all rows.

    Of several workers only the chief returns: the others train along and end then.

    Args:
        runs: The runs, in order.
        output: Their folders are in it.
        results: Gets their rows.
        resume: Whether rows and folders of earlier runs are used; else they are removed
            as soon as the first run is prepared, which finds most mistakes.

    Raises:
        ValueError: If two runs have one name, or files are damaged or of other
            settings.
        BlockingIOError: If another process makes a run.
        TrainingDivergedError: After the other runs, if one has diverged.
    """
    by_name(runs)
    run_workers.follow(lambda number: _follow(runs[number], output))
    if resume:
        for run in runs:
            _check_earlier(run, output, results)
    # Asked now: what is committed while runs go on is not what they run.
    machine.commit()
    rows, anew = [], not resume
    diverged: list[str] = []
    for number, run in enumerate(runs, start=1):
        place = f"[{number}/{len(runs)}] {run.name}"
        with contextlib.ExitStack() as stack:
            if anew or run.name not in results:
                stack.enter_context(run_lock.held(output / run.name))
            # Another process may have been through with it just now.
            if run.name in results and not anew:
                print(f"{place}: done before", flush=True)
                rows.append(results.read(run.name, run.needs))
                continue
            print(place, flush=True)
            # The graphs of a run are of no use to the next.
            stack.enter_context(released_graphs())
            run_workers.tell(number - 1)
            prepared = run.prepare()
            if anew:
                _forget_earlier(runs, run, output, results)
                anew = False
            try:
                found = run.train(prepared, output / run.name)
            except TrainingDivergedError as error:
                diverged.append(f"{run.name}: {error}")
                print(f"{place}: {error}", flush=True)
            else:
                row = {**found, "name": run.name, "settings": run.settings}
                row = with_nulls(row)
                results.write(run.name, row)
                # Large, and of no use once there is a row.
                run_files.remove(output / run.name / run_files.TRAININGS)
                rows.append(row)
            del prepared
    run_workers.tell(None)
    if diverged:
        raise TrainingDivergedError("\n".join(diverged))
    return rows


def _follow(run: Run, output: pathlib.Path) -> None:
    print(run.name, flush=True)
    run.train(run.prepare(), output / run.name)


def finished_rows(runs: Sequence[Run], results: Rows) -> list[dict[str, Any]]:
    """Returns the rows of the runs that are done, in order."""
    return [results.read(run.name, run.needs) for run in runs if run.name in results]


def _check_earlier(run: Run, output: pathlib.Path, results: Rows) -> None:
    """Raises ValueError where files of another run would be taken for this one's."""
    config = output / run.name / "config.json"
    if run.name in results:
        where, found = results.place(run.name), _settings_of_row(run.name, results)
    elif config.exists():
        where = str(config)
        found = read_json(config, "remove its folder, or say --noresume")
    else:
        return
    check_same_settings(
        found,
        run.settings,
        where,
        "another --output_dir (and --results_dir), or --noresume to start anew",
    )


def _settings_of_row(name: str, results: Rows) -> dict[str, Any]:
    row = results.read(name)
    found = row.get("settings")
    if found is None and isinstance(row.get("config"), dict):
        # A row of `experiments.imm_lm` before rows had settings.
        corpus = row.get("corpus")
        digest = corpus.get("text_sha256") if isinstance(corpus, dict) else None
        found = {**row["config"], "text_sha256": digest}
    if not isinstance(found, dict):
        raise ValueError(
            f"{results.place(name)} is no row of a run: it has no settings; remove it, "
            "and the run is made again."
        )
    return found


def _forget_earlier(
    runs: Sequence[Run], held: Run, output: pathlib.Path, results: Rows
) -> None:
    """Removes what the runs have left, so that a kill leaves nothing to be mistaken.

    Args:
        runs: All of them.
        held: The one of them whose lock this process has.
        output: Of the runs.
        results: Their rows.
    """
    with contextlib.ExitStack() as stack:
        for run in runs:
            if run is not held:
                stack.enter_context(run_lock.held(output / run.name))
        results.remove([run.name for run in runs])
        for run in runs:
            run_files.clear_run(output / run.name)
