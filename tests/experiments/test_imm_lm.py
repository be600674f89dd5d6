"""The binary as a user runs it: smoke preset, resume after a kill, messages."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import re
import signal
import subprocess
import sys
import time

import pytest

from experiments.imm_lm import report, studies
from experiments.imm_lm.config import PRESETS, RunConfig, check_config
from experiments.kit.rows import Rows
from experiments.kit.run_settings import settings_of
from rlm_tf.data import load_corpus
from tests.experiments.binaries import ROOT, run_binary


def _start(output: pathlib.Path, *flags: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "experiments.imm_lm", "--preset=smoke"]
    return subprocess.Popen(
        [*command, f"--output_dir={output}", *flags],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _run(
    output: pathlib.Path, *flags: str, check: bool = False
) -> subprocess.CompletedProcess[str]:
    flags = ("--preset=smoke", f"--output_dir={output}", *flags)
    done = run_binary("imm_lm", *flags, check=check)
    assert "InitializeLog" not in done.stderr
    return done


def _without_times(row: dict) -> dict:
    return {
        key: row[key]
        for key in row
        if key not in ("seconds", "finished", "commit", "step_ms", "other_cores")
    }


@pytest.mark.landing
def test_smoke_run_writes_rows_table_figure_and_export(tmp_path):
    arms = "--arms=none,noising-blank,imm-in-batch,imm-sampled"
    export = f"--export={tmp_path / 'saved_model'}"
    process = _start(tmp_path, arms, "--k=2", export)
    printed, errors = process.communicate(timeout=300)
    assert process.returncode == 0 and "InitializeLog" not in errors, errors
    rows = Rows(tmp_path / "results")
    assert len(rows.names()) == 4
    row = rows.read("imm-sampled-20th-seed1")
    assert row["config"]["k"] == 2 and "--k=2" in row["command"]
    assert 1 < row["perplexity"]["test"] < 2000
    assert row["interpolation"]["same"]["valid"] <= row["perplexity"]["valid"] * 1.0001
    assert row["induced_perplexity"]["valid"]["left_out"] > 0
    assert (tmp_path / "learning_curves.png").stat().st_size > 10_000
    assert (tmp_path / "saved_model" / "saved_model.pb").exists()
    assert "imm-in-batch-20th" in printed and "Induced models" in printed
    # All is done: a second call only reports.
    rows_given = f"--results_dir={tmp_path / 'results'}"
    again = _run(tmp_path / "elsewhere", arms, "--k=2", rows_given)
    assert again.stdout.count("done before") == 4
    assert (tmp_path / "elsewhere" / "table.md").exists()
    # Settings that cannot be are found before anything is deleted.
    mistaken = _run(tmp_path, arms, "--noresume", "--dropout=1.5")
    assert "--dropout must lie in [0, 1)" in mistaken.stderr
    assert len(rows.names()) == 4


def _in_mid_epoch(folder: pathlib.Path) -> bool:
    """Whether both checkpoints are of an epoch that is neither the first nor over."""
    states = []
    for path in folder.glob("checkpoint-*"):
        try:
            states.append(json.loads((path / "state.json").read_text())["state"])
        except FileNotFoundError:  # it was just removed
            return False
    return len(states) == 2 and all(s["epoch"] > 0 and s["step"] > 0 for s in states)


@pytest.mark.landing
def test_killed_run_ends_with_the_bits_of_an_uninterrupted_one(tmp_path):
    flags = ("--arms=imm-in-batch", "--epochs=4", "--bank_size=300")
    _run(tmp_path / "whole", *flags, check=True)
    process = _start(tmp_path / "killed", *flags, "--checkpoint_seconds=0.01")
    folder = tmp_path / "killed" / "imm-in-batch-20th-seed1" / "checkpoints"
    deadline = time.monotonic() + 200
    while not _in_mid_epoch(folder):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not (tmp_path / "killed" / "results").exists()
    # The newest checkpoint is damaged as well: it is named, and the one before is used.
    newest = max(folder.glob("checkpoint-*"))
    for file in newest.iterdir():
        file.write_bytes(file.read_bytes()[:100])
    again = _run(tmp_path / "killed", *flags, check=True)
    assert newest.name in again.stderr and "is damaged and not used" in again.stderr
    assert re.search(r"Resuming from .*: epoch [1-9], step \d+ of \d+", again.stderr)
    assert "epoch 1/4" not in again.stdout and "epoch 4/4" in again.stdout
    name = "imm-in-batch-20th-seed1"
    whole, killed = (
        Rows(tmp_path / run / "results").read(name) for run in ("whole", "killed")
    )
    assert _without_times(whole) == _without_times(killed)
    assert [point["epoch"] for point in killed["curve"]] == [0, 1, 2, 3]


@pytest.mark.landing
def test_a_killed_new_start_leaves_nothing_of_the_run_before(tmp_path):
    name = "none-20th-seed1"
    rows = Rows(tmp_path / "results")
    _run(tmp_path, "--arms=none", "--epochs=1", check=True)
    assert name in rows
    process = _start(tmp_path, "--arms=none", "--epochs=3", "--noresume")
    settings, checkpoints = (
        tmp_path / name / part for part in ("config.json", "checkpoints")
    )
    deadline = time.monotonic() + 200
    while not (
        settings.exists()
        and '"epochs": 3' in settings.read_text()
        and any(checkpoints.glob("checkpoint-*"))
    ):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert name not in rows
    _run(tmp_path, "--arms=none", "--epochs=3", check=True)
    curve = rows.read(name)["curve"]
    assert [point["epoch"] for point in curve] == [0, 1, 2]


@pytest.mark.landing
@pytest.mark.slow
def test_mistakes_found_while_training_are_one_line(tmp_path):
    diverging = (
        "--arms=none",
        "--learning_rate=1e30",
        "--clip_norm=1e30",
        "--epochs=6",
    )
    done = _run(tmp_path, *diverging)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "Recovery 3 of at most 3" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: ")
    assert "diverged" in done.stderr.splitlines()[-1]


def test_another_text_is_not_taken_for_this_runs(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("one two three four\n" * 50)
    config = dataclasses.replace(
        PRESETS["smoke"], arm="none", corpus=str(text), fraction=1.0
    )
    settings = settings_of(config, load_corpus(str(text)))
    folder = tmp_path / "out" / config.name
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(settings))
    text.write_text("one two three four\n" * 49 + "four three two one\n")
    done = _run(tmp_path / "out", "--arms=none", f"--corpus={text}", "--fraction=1")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "other settings: text_sha256 was" in done.stderr
    assert "or --noresume to start anew." in done.stderr


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--arms=none,magic"], "error: --arms must be some of none, "),
        (["--arm=magic"], "error: --arm must be one of none, "),
        (["--presett=small"], "error: Unknown command line flag 'presett'"),
        (["--seeds=1,a"], "error: --seeds must be of type int, found 'a'"),
        (["--resume", "false"], "unexpected arguments: false"),
        (["--project_steps=-1"], "-1 is not a non-negative integer"),
        (
            ["--seeds=1,1"],
            "error: the run none-20th-seed1 is named twice",
        ),
        (["--study=full", "--seeds=1,2"], "error: --study=full has one seed, found"),
        (["--project_steps=9999"], "error: --project_steps must be below the"),
    ],
)
def test_wrong_flags_get_one_message(tmp_path, flags, message):
    done = _run(tmp_path, *flags)
    assert done.returncode != 0
    assert message in done.stderr
    # One line, and nothing else.
    assert done.stderr.count("\n") == 1 and not done.stdout
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("given", [(), ("--preset=paper",), ("--preset", "paper")])
def test_help_is_readable_and_shows_the_values_of_a_preset(given):
    done = run_binary("imm_lm", "--help", *given)
    assert done.returncode == 0 and not done.stderr
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 88
    name = "paper" if given else "small"
    assert f"Settings, with the values of --preset={name}:" in lines
    for flag in ("preset=small", "data_dir", "output_dir=runs/imm_lm", "seeds=1"):
        assert f"  --{flag}" in lines
    assert "  --[no]resume  [yes]" in lines
    values = dataclasses.asdict(PRESETS[name])
    for setting in ("width", "dropout", "max_decays", "bank_size"):
        assert f"  --{setting}={values[setting]}" in lines
    assert "      lambda of IMM." in lines


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_presets_are_possible(name):
    check_config(PRESETS[name])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fraction": 0.0}, r"--fraction must lie in \(0, 1\]"),
        (
            {"restricted_text": "some"},
            "--restricted_text must be one of same, all; found 'some'",
        ),
        ({"epochs": 0}, "--epochs must be at least 1"),
        ({"num_layers": 0}, "--num_layers must be at least 1"),
        ({"min_count": 0}, "--min_count must be at least 1"),
        ({"bank_target": 9}, "--bank_target needs a bank: --bank_size is 0"),
        (
            {"bank_size": 9, "bank_target": 2},
            "--bank_target must not be below --min_count, 5",
        ),
        (
            {"arm": "imm-in-batch", "restricted_order": 4, "window": 2},
            "--window must hold a short context of --restricted_order 4, 3 words",
        ),
        ({"pass_mode": "x"}, "--pass_mode must be one of training, evaluation"),
        ({"coefficient": -1.0}, "--coefficient must be finite and not negative"),
        ({"dropout": 1.5}, r"--dropout must lie in \[0, 1\), found 1.5"),
        ({"decay": 2.0}, r"--decay must lie in \(0, 1\), found 2.0"),
        ({"max_decays": -1}, "--max_decays must be at least 0"),
        ({"gamma0": 7.0}, r"--gamma0 must lie in \[0, 1\]"),
        ({"learning_rate": -1.0}, "--learning_rate must be positive"),
        ({"start_perplexity": -3.0}, "--start_perplexity must be positive"),
    ],
)
def test_impossible_settings_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        check_config(RunConfig(**changes))


def test_arms_without_tuned_settings_are_refused(monkeypatch):
    monkeypatch.setitem(studies.TUNED, "none", {})
    with pytest.raises(ValueError, match="The arm none is not tuned yet"):
        studies.main([1])


def test_rows_of_other_settings_are_not_taken_for_this_run(tmp_path):
    row = tmp_path / "results" / "none-20th-seed1.json"
    row.parent.mkdir()
    found = dataclasses.asdict(dataclasses.replace(PRESETS["smoke"], dropout=0.7))
    row.write_text(json.dumps({"config": found}))
    done = _run(tmp_path, "--arms=none")
    assert done.returncode != 0 and "Traceback" not in done.stderr
    assert "dropout was 0.7 and is 0.3" in done.stderr
    # Nor can a model be exported of which there is nothing but the row.
    row.write_text(json.dumps({"config": dataclasses.asdict(PRESETS["smoke"])}))
    done = _run(tmp_path, "--arms=none", f"--export={tmp_path / 'x'}")
    assert "error: --export needs" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "flags", [("--study=tuning", "--epochs=2"), ("--study=tuning", "--arms=none")]
)
def test_a_study_takes_no_settings(tmp_path, flags):
    done = run_binary("imm_lm", f"--output_dir={tmp_path}", *flags)
    assert done.returncode != 0
    assert done.stderr.startswith("error: --study has settings of its own")


@pytest.mark.parametrize("name", sorted(studies.STUDIES))
def test_studies_name_every_run_once(name):
    runs = studies.STUDIES[name]([1, 2, 3])
    assert len({run.name for run in runs}) == len(runs)
    for run in runs:
        check_config(run.config)


def test_every_arm_gets_the_same_number_of_trials():
    trials = studies.tuning([1])
    arms = [run.name.rsplit("-trial", 1)[0] for run in trials]
    assert {arms.count(arm) for arm in arms} == {6}


def test_spread_is_the_sample_standard_deviation():
    assert report.spread([1.0, 2.0, 3.0]) == "2.00 ± 1.00"
    assert report.spread([1.5]) == "1.50"
    assert report.spread([None]) == "-"
