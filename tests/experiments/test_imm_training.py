"""Every arm trains and gets its row; what a run shows and logs meanwhile."""

from __future__ import annotations

import dataclasses
import json
import math
import types

import keras
import pytest
import tensorflow as tf

from experiments.imm_lm import training
from experiments.imm_lm.config import ARMS, RunConfig
from experiments.kit import run_files
from rlm_tf.data import load_corpus
from rlm_tf.training import MetricsLog, read_metrics_log

TINY = RunConfig(
    fraction=0.02, width=4, num_layers=1, batch_size=4, window=5, epochs=2, k=2
)
# The binary's own test trains the other arms.
CHANGES = {
    "interpolation": {},
    "noising-unigram": {},
    "noising-bigram-kn": {},
    "noising-bigram-kn-modified": {},
    "imm-in-batch": {"start_perplexity": 1e9, "start_learning_rate": 0.25},
    "imm-sampled": {"variant": "authors"},
}


@pytest.fixture(scope="module")
def corpus():
    """Short validation and test texts: the arms differ in training."""
    whole = load_corpus("python-docs")
    return dataclasses.replace(whole, valid=whole.valid[:500], test=whole.test[:500])


@pytest.mark.slow
@pytest.mark.parametrize("arm", sorted(CHANGES))
def test_arm(arm, corpus, tmp_path):
    assert arm in ARMS
    config = dataclasses.replace(TINY, arm=arm, **CHANGES[arm])
    row = training.train(training.prepare(config, corpus), tmp_path)
    assert row["config"] == dataclasses.asdict(config)
    assert row["epochs"] == len(row["curve"]) == 2 and row["step_ms"] > 0
    mixed = row["interpolation"]["same"]
    assert 0 <= mixed["mu"] <= 1 and math.isfinite(mixed["test"])
    if arm == "interpolation":
        assert row["perplexity"] == {name: mixed[name] for name in ("valid", "test")}
    else:
        assert row["perplexity"]["valid"] > mixed["valid"]
    if arm == "imm-in-batch":
        # IMM begins after the first epoch, with a learning rate of its own.
        rates = [point["learning_rate"] for point in row["curve"]]
        assert rates == [1.0, 0.25]
        assert [point["imm"] > 0 for point in row["curve"]] == [False, True]
    assert ("imm" in row["curve"][1]) == arm.startswith("imm")


def _scalars(folder):
    """Returns (step, name) -> value of all events, and how many there are."""
    values, number = {}, 0
    for path in folder.glob("events.*"):
        for record in tf.data.TFRecordDataset(str(path)):
            event = tf.compat.v1.Event.FromString(record.numpy())
            for value in event.summary.value:
                values[event.step, value.tag] = float(tf.make_ndarray(value.tensor))
                number += 1
    return values, number


def test_tensorboard_of_a_resumed_run_has_no_point_twice(tmp_path):
    path, folder = tmp_path / "metrics.jsonl", tmp_path / "tensorboard"
    rows = [{"epoch": epoch, "loss": 3.0 - epoch, "odd": None} for epoch in range(3)]

    def epoch(shown, number):
        shown.set_model(keras.Sequential())
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(rows[number]) + "\n")
        shown.on_epoch_end(number)

    first = run_files.TensorBoardScalars(folder, MetricsLog(path))
    epoch(first, 0)
    epoch(first, 1)
    epoch(run_files.TensorBoardScalars(folder, MetricsLog(path)), 2)
    assert len(read_metrics_log(path)) == 3
    values, number = _scalars(folder)
    # People count from 1.
    assert values == {(e + 1, "loss"): 3.0 - e for e in range(3)}
    assert number == 3


def test_progress_names_epoch_perplexity_and_what_is_left(capsys):
    progress = run_files.EpochProgress("run", 4)
    progress.set_params({"steps": 5})
    progress.on_epoch_begin(2)
    for batch in range(5):
        progress.on_train_batch_begin(batch)
    progress.on_test_begin()
    progress.on_epoch_end(2, {"perplexity": 12.345, "nll": 1.0})
    line = capsys.readouterr().out
    assert line.startswith("run: epoch 3/4  perplexity 12.35  0.0 s/epoch  0.0 min")
    assert "nll" not in line


def test_timer_measures_training_steps_only(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(run_files.time, "perf_counter", lambda: now[0])
    timer = run_files.StepTimer()
    for seconds in (2.0, 4.0, 90.0):
        timer.on_epoch_begin(0)
        for batch in range(4):
            timer.on_train_batch_begin(batch)
        now[0] += seconds
        timer.on_test_begin()
        now[0] += 1000.0
        timer.on_test_begin()  # an evaluation without training before it
    assert timer.result()["step_ms"] == 1000.0
    averages = types.SimpleNamespace(seconds=7.0)
    timer = run_files.StepTimer(averages)
    timer.on_epoch_begin(0)
    for batch in range(4):
        timer.on_train_batch_begin(batch)
    now[0] += 12.0
    averages.seconds += 4.0
    timer.on_epoch_end(0)
    assert timer.result()["step_ms"] == 2000.0
    assert run_files.StepTimer().result() == {"step_ms": None, "other_cores": None}
