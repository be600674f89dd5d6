"""Two processes that want one run."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys

import pytest

from experiments.kit.rows import Rows
from experiments.kit.run_list import Run, run_all
from rlm_tf.command_line import run_lock
from tests.experiments.binaries import ROOT


def _missing(*_):
    raise OSError(errno.ENOLCK, "No locks available")


@pytest.fixture(params=[True, False], ids=["flock", "no flock"])
def flock(request, monkeypatch):
    """Whether the file system has locks."""
    if not request.param:
        monkeypatch.setattr(run_lock.fcntl, "flock", _missing)
    return request.param


def _refused(folder, message):
    with (
        pytest.raises(BlockingIOError, match=message) as caught,
        run_lock.held(folder),
    ):
        pass
    assert "\n" not in str(caught.value)


def test_only_one_holds_it_and_nothing_stays(tmp_path, flock):
    folder = tmp_path / "new" / "run"
    for _ in range(2):
        with run_lock.held(folder):
            _refused(folder, rf"run is being written by process {os.getpid()} on ")
            # Another run is another matter.
            with run_lock.held(folder.with_name("other")):
                pass
            _refused(folder, "Wait for it, or use another --output_dir")
        assert not list(folder.parent.iterdir())
    with pytest.raises(KeyError), run_lock.held(folder):
        raise KeyError
    assert not list(folder.parent.iterdir())


@pytest.mark.parametrize("content", ["", "garbage", "[]", '{"pid": 1}'])
def test_a_file_left_by_a_kill_is_no_obstacle(tmp_path, flock, content):
    for name in (".run.lock", ".run.lock.owner"):
        (tmp_path / name).write_text(content)
        os.utime(tmp_path / name, (0, 0))
    with run_lock.held(tmp_path / "run"):
        _refused(tmp_path / "run", str(os.getpid()))


@pytest.mark.parametrize(
    ("changes", "free"),
    [
        ({}, False),
        ({"host": "elsewhere"}, False),
        ({"boot": "before"}, True),
        # A process of that number is there, but it is another.
        ({"started": 1}, True),
        ({"pid": 2**22 + 1}, True),
    ],
)
def test_without_locks_the_file_tells_whether_its_owner_lives(
    tmp_path, monkeypatch, changes, free
):
    monkeypatch.setattr(run_lock.fcntl, "flock", _missing)
    owner = run_lock._myself() | changes
    (tmp_path / ".run.lock.owner").write_text(json.dumps(owner))
    if free:
        with run_lock.held(tmp_path / "run"):
            pass
    else:
        _refused(tmp_path / "run", r"If it is gone, remove .*\.run\.lock\.owner\.")


def test_the_lock_of_a_killed_process_is_free(tmp_path):
    program = (
        "import pathlib, time\n"
        "from rlm_tf.command_line import run_lock\n"
        f"with run_lock.held(pathlib.Path({str(tmp_path / 'run')!r})):\n"
        "    print('held', flush=True)\n"
        "    time.sleep(60)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE
    )
    assert process.stdout.readline() == b"held\n"
    _refused(tmp_path / "run", f"process {process.pid} on")
    process.kill()
    process.communicate()
    assert (tmp_path / ".run.lock").exists()
    with run_lock.held(tmp_path / "run"):
        pass


def _run(name, train=lambda prepared, folder: {"value": 1.0}):
    return Run(name, {"name": name}, dict, train)


def test_a_second_list_of_runs_is_refused_and_changes_nothing(tmp_path):
    output, results = tmp_path / "runs", Rows(tmp_path / "rows")
    trained = []

    def meanwhile(prepared, folder):
        trained.append(folder.name)
        with pytest.raises(BlockingIOError, match=r"runs/b is being written by"):
            run_all([_run("b", meanwhile)], output, results, True)
        # Nor are rows and files removed under the hands of the other.
        with pytest.raises(BlockingIOError, match=r"runs/b is being written by"):
            run_all([_run("a"), _run("b")], output, results, False)
        assert "a" in results
        return {"value": 2.0}

    rows = run_all([_run("a"), _run("b", meanwhile)], output, results, True)
    assert trained == ["b"]
    assert [row["value"] for row in rows] == [1.0, 2.0]
    assert results.names() == ["a", "b"]
    assert not list(output.iterdir())


def test_a_run_that_was_done_while_its_lock_was_awaited_is_not_made_again(
    tmp_path, monkeypatch
):
    """Its row appears between the look for it and the lock."""
    rows = Rows(tmp_path / "rows")
    (row,) = run_all([_run("a")], tmp_path, rows, True)
    rows.remove(["a"])
    held = run_lock.held

    def late(folder):
        rows.write("a", row)
        return held(folder)

    monkeypatch.setattr(run_lock, "held", late)
    assert run_all([_run("a", None)], tmp_path, rows, True) == [row]
