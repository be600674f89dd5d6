"""Parts of `experiments.averaging` that were interrupted end as if they were not."""

from __future__ import annotations

import dataclasses

import pytest

from experiments.averaging import lengths, training, trajectory
from experiments.averaging.config import PRESETS
from tests.experiments.binaries import run_binary

SMOKE = dataclasses.replace(PRESETS["smoke"], length_epochs=2)


class InterruptionError(Exception):
    """What a kill is to a part that runs in this process."""


class Interrupting(training.EpochProgress):
    def on_epoch_end(self, epoch, logs=None):
        raise InterruptionError


@pytest.mark.landing
@pytest.mark.parametrize("compute", [trajectory.compute, lengths.compute])
def test_interrupted_parts_go_on(compute, tmp_path, monkeypatch):
    whole = compute(SMOKE, tmp_path / "whole")
    with monkeypatch.context() as patched:
        patched.setattr(training, "EpochProgress", Interrupting)
        with pytest.raises(InterruptionError):
            compute(SMOKE, tmp_path / "interrupted")
    epochs = []

    class Counting(training.EpochProgress):
        def on_epoch_begin(self, epoch, logs=None):
            epochs.append(epoch)
            super().on_epoch_begin(epoch, logs)

    monkeypatch.setattr(training, "EpochProgress", Counting)
    assert compute(SMOKE, tmp_path / "interrupted") == whole
    assert epochs == [1]


@pytest.mark.landing
def test_checkpoints_of_other_settings_are_refused(tmp_path):
    flags = ["--preset=smoke", "--parts=overfitting", f"--output_dir={tmp_path}"]
    settings = tmp_path / "checkpoints" / "overfitting" / "config.json"
    settings.parent.mkdir(parents=True)
    settings.write_text('{"config": {"seed": 5}}')
    done = run_binary("averaging", *flags)
    assert done.returncode == 1 and "seed was 5 and is 1" in done.stderr
    assert settings.exists() and "Traceback" not in done.stderr
    done = run_binary("averaging", *flags, "--noresume", check=True)
    assert "Over-fitting, E" in done.stdout and not settings.exists()
