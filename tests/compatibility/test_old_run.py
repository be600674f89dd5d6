"""Runs of an earlier version are skipped, gone on with, exported and reported."""

from __future__ import annotations

import json
import pathlib
import shutil

import numpy as np
import pytest

from tests.compatibility import arrays, commands, old_run

# Data sets trace their functions without graphs, too, and say so.
pytestmark = pytest.mark.filterwarnings("ignore:Even though the:UserWarning")

END = json.loads(old_run.END.read_text("utf-8"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> pathlib.Path:
    """A copy of the old folder."""
    copy = tmp_path_factory.mktemp("old") / "copy"
    return pathlib.Path(shutil.copytree(old_run.FOLDER, copy))


@pytest.mark.eager
def test_it_is_gone_on_with(folder, capsys):
    done = (folder / "run" / "results" / f"{old_run.DONE}.json").read_bytes()
    row = old_run.resume(folder)
    printed = capsys.readouterr().out
    assert f"{old_run.DONE}: done before" in printed
    assert f"{old_run.KILLED}: epoch 2/2" in printed
    assert f"{old_run.KILLED}: epoch 1/2" not in printed
    known = arrays.flat("row", END["row"])
    assert len(known) > 50
    arrays.assert_close(arrays.flat("row", row), known, 1e-4)
    assert done == (folder / "run" / "results" / f"{old_run.DONE}.json").read_bytes()


def test_its_row_is_reported(folder, tmp_path, capsys):
    path = folder / "run" / "results" / f"{old_run.DONE}.json"
    (tmp_path / "main").mkdir()
    shutil.copy(path, tmp_path / "main")
    with commands.loaded("imm_report") as binary:
        binary.run(f"--results_dir={tmp_path} --output_dir={tmp_path / 'figures'}")
    printed = capsys.readouterr().out
    values = json.loads(path.read_text("utf-8"))["perplexity"]
    assert f"{values['valid']:.2f} | {values['test']:.2f}" in printed
    assert (tmp_path / "figures" / "imm_lm_main.png").exists()


@pytest.mark.eager
def test_its_model_is_exported(folder):
    found = old_run.exported_log_probs(folder)
    np.testing.assert_allclose(found, END["log_probs"], rtol=1e-4)
