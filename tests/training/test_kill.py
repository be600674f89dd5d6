"""Runs that are killed (SIGKILL) resume to the bits of an uninterrupted run."""

from __future__ import annotations

import os
import pathlib
import pickle
import subprocess
import sys

import numpy as np
import pytest

from tests.training.toy import assert_same

ROOT = pathlib.Path(__file__).parents[2]


@pytest.mark.landing
def test_killed_runs_end_with_the_bits_of_an_uninterrupted_one(tmp_path):
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
    completed = subprocess.run(
        [sys.executable, "-m", "tests.training.kill_runs", str(tmp_path)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr[-4000:]
    names = ("toy", "lm", "bmi", "bmi_finetuning", "electra", "fine_tuning", "teacher")
    names += ("student", "mirrored", "electra_of_one", "language_teacher")
    names += ("language_student",)
    for name in names:
        resumed, expected = (
            pickle.loads((tmp_path / f"{run}.pickle").read_bytes())
            for run in (name, f"{name}-uninterrupted")
        )
        assert_same(resumed, expected)
        assert expected["first"] == (0, 0)
        # Resumed, not started anew; None where nothing was left to train.
        assert resumed["first"] is None or resumed["first"] > (0, 0), name
        assert any("seed" in path for path in expected["arrays"])
        assert any(
            ("state" in path or "carried" in path) and np.any(array != 0)
            for path, array in expected["arrays"].items()
        )
        assert not list((tmp_path / name / "checkpoints").glob(".partial-*"))
