"""Two workers train as one process does, and go on after one has died."""

from __future__ import annotations

import inspect
import json
import os
import pathlib
import pickle
import signal
import subprocess
import sys
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from experiments.kit.rows import Rows
from tests.training.toy import assert_same
from tests.workers.cases import CASES, trained

pytestmark = pytest.mark.landing

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> pathlib.Path:
    """What `cluster.py` leaves: it runs once."""
    folder = tmp_path_factory.mktemp("workers")
    completed = subprocess.run(
        [sys.executable, "-m", "tests.workers.cluster", str(folder)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr[-4000:]
    return folder


def _found(folder: pathlib.Path, name: str) -> list[dict[str, Any]]:
    """Returns what the workers of a run returned."""
    statuses = json.loads((folder / "statuses.json").read_text())[name]
    indices = range(len(statuses))
    texts = [(folder / f"{name}-{index}.txt").read_text()[-2000:] for index in indices]
    assert not any(statuses), "\n".join(texts)
    paths = (folder / f"{name}-{index}.pickle" for index in indices)
    return [pickle.loads(path.read_bytes()) for path in paths]


@pytest.mark.parametrize("name", CASES)
def test_two_workers_train_as_one_process(name, folder, two_replicas):
    case = CASES[name]
    one = two_replicas if case.groups_by_replica else tf.distribute.get_strategy()
    expected = trained(case, one)
    for found in (worker[name] for worker in _found(folder, "cases")):
        for ours, theirs in zip(found["weights"], expected["weights"], strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)
        for part in ("history", "evaluated"):
            assert found[part].keys() == expected[part].keys()
            for metric, value in found[part].items():
                np.testing.assert_allclose(
                    value,
                    expected[part][metric],
                    rtol=1e-5,
                    atol=1e-6,
                    err_msg=metric,
                )


@pytest.mark.parametrize("dead", [0, 1])
def test_when_a_worker_dies_the_other_ends_and_all_resume(dead, folder):
    statuses = json.loads((folder / "statuses.json").read_text())[f"death_{dead}"]
    assert statuses[dead] == -signal.SIGKILL
    assert statuses[1 - dead] == 0
    survivor = folder / f"death_{dead}-{1 - dead}.pickle"
    last = pickle.loads(survivor.read_bytes())
    assert "Another worker of the strategy has ended" in last["lost"]
    assert "\n" not in last["lost"]
    died = float((folder / f"killed_{dead}" / "died").read_text())
    assert last["ended"] - died < 60
    resumed, whole = _found(folder, f"resumed_{dead}"), _found(folder, "whole")
    for ours, expected in zip(resumed, whole, strict=True):
        assert expected["first"] == (0, 0) and ours["first"] > (0, 0)
        assert_same(ours, expected)


def test_each_worker_keeps_its_own_replicas(folder):
    arrays = [worker["arrays"] for worker in _found(folder, "whole")]
    own = [{name for name in found if "/replica_" in name} for found in arrays]
    assert own[0] and own[1]
    assert all(name.endswith("/replica_0") for name in own[0])
    assert all(name.endswith("/replica_1") for name in own[1])
    carried = [found[f"carried/training/replica_{i}"] for i, found in enumerate(arrays)]
    assert np.abs(carried[0] - carried[1]).max() > 1e-3


def test_a_binary_makes_on_two_workers_the_runs_of_one(folder):
    rows = {}
    for name in ("alone", "led"):
        assert not any(worker["code"] for worker in _found(folder, name))
        rows[name] = Rows(folder / name / "results").read("smoke-seed1")
    found, expected = (rows[name]["evaluation"]["train"] for name in ("led", "alone"))
    np.testing.assert_allclose(found["nll"], expected["nll"], rtol=1e-3)
    np.testing.assert_allclose(found["usage"], expected["usage"], rtol=1e-2)
    # Of the second run nothing is made again but what is missing.
    assert not any(worker["code"] for worker in _found(folder, "again"))
    text = (folder / "again-0.txt").read_text()
    assert "[1/2] smoke-seed1: done before" in text
    assert "smoke-seed1: epoch" not in text
    assert "smoke-seed2: epoch 2/2" in text
    assert "smoke-seed2" in Rows(folder / "led" / "results")
    follower = (folder / "again-1.txt").read_text()
    assert "smoke-seed2: epoch 2/2" in follower and "| run |" not in follower


def test_workers_search_together(folder):
    assert not any(worker["code"] for worker in _found(folder, "search"))
    rows = list((folder / "search" / "search").glob("trial_*/row.json"))
    assert len(rows) == 2
    assert "| trial_1 |" in (folder / "search" / "table.md").read_text()


def test_this_is_the_keras_that_the_overrides_are_made_for():
    """If not: does `WorkerModel` still have to override what it does?"""
    assert keras.__version__.startswith("3.15.")
    base = inspect.signature(keras.Model._maybe_symbolic_build)
    assert list(base.parameters) == ["self", "iterator", "data_batch"]
