"""The file of metrics."""

from __future__ import annotations

import json

import keras
import pytest

from rlm_tf.training import MetricsLog, read_metrics_log
from tests.training.test_resume import interrupted
from tests.training.toy import STEPS, ToyModel, toy_batches


@pytest.fixture
def log(tmp_path):
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.5), "mse")
    callback = MetricsLog(tmp_path / "runs" / "metrics.jsonl")
    callback.set_model(model)
    return callback


def test_rows(log):
    log.on_epoch_end(0, {"loss": 1.25, "val_loss": float("inf")})
    log.on_epoch_end(1, {"loss": 1.0})
    assert read_metrics_log(log.path) == [
        {"epoch": 0, "learning_rate": 0.5, "loss": 1.25, "val_loss": None},
        {"epoch": 1, "learning_rate": 0.5, "loss": 1.0},
    ]
    # Strict JSON.
    for line in log.path.read_text().splitlines():
        json.loads(line, parse_constant=pytest.fail)


def test_state_drops_younger_rows_and_a_half_line(log):
    log.on_epoch_end(0, {"loss": 1.0})
    state = log.get_state()
    log.on_epoch_end(1, {"loss": 2.0})
    with log.path.open("a") as file:
        file.write('{"epoch": 2, "lo')
    assert [row["epoch"] for row in read_metrics_log(log.path)] == [0, 1]
    log.set_state(state)
    log.on_epoch_end(1, {"loss": 3.0})
    rows = read_metrics_log(log.path)
    assert [(row["epoch"], row["loss"]) for row in rows] == [(0, 1.0), (1, 3.0)]


def test_missing_rows_are_an_error(log):
    log.on_epoch_end(0, {"loss": 1.0})
    state = log.get_state()
    log.path.unlink()
    with pytest.raises(ValueError, match="has 0 rows, the checkpoint was"):
        log.set_state(state)


def test_seconds_count_on(log):
    log.seconds = True
    log.set_state({"rows": 0, "elapsed": 100.0})
    log.on_epoch_end(0, {})
    assert 100.0 <= read_metrics_log(log.path)[0]["seconds"] < 101.0


def test_errors(tmp_path):
    with pytest.raises(ValueError, match="`every_steps` must be an integer >= 1"):
        MetricsLog(tmp_path / "x", every_steps=0)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        read_metrics_log(tmp_path / "x")
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"epoch": 0}\n[1]\n')
    with pytest.raises(ValueError, match="line 2: expected a JSON object"):
        read_metrics_log(path)
    path.write_text("{\n")
    with pytest.raises(ValueError, match="line 1"):
        read_metrics_log(path)


@pytest.mark.parametrize(
    "damage",
    [
        b"garbage",
        b"\xff\xfe",
        b"",
        b"null",
        b"3",
        b'"epoch"',
        b'["epoch"]',
        b"{}",
        b'{"epoch": "1"}',
        b'{"epoch": 1, "loss": "low"}',
        b'{"epoch": 1, "loss": [1.0]}',
        b"[" * 100_000,
    ],
)
def test_a_damaged_line_is_named_when_training_resumes(log, damage):
    """Not hours later, when the rows are read."""
    log.on_epoch_end(0, {"loss": 1.0})
    log.on_epoch_end(1, {"loss": 2.0})
    state = log.get_state()
    first, _, rest = log.path.read_bytes().partition(b"\n")
    log.path.write_bytes(first + b"\n" + damage + b"\n" + rest)
    for read in (lambda: log.set_state(state), lambda: read_metrics_log(log.path)):
        with pytest.raises(ValueError, match=r"metrics\.jsonl, line 2: .*start anew"):
            read()


def test_a_folder_in_the_place_of_the_file(log):
    log.path.mkdir(parents=True)
    for read in (
        lambda: log.set_state({"rows": 1, "elapsed": 0.0}),
        lambda: read_metrics_log(log.path),
    ):
        with pytest.raises(ValueError, match=r"metrics\.jsonl is a folder"):
            read()


def test_a_full_disk_is_named(log):
    log.path.parent.mkdir()
    log.path.symlink_to("/dev/full")
    with pytest.raises(OSError, match=r"No space left on device: .*metrics\.jsonl"):
        log.on_epoch_end(0, {"loss": 1.0})


def test_metrics_log_keeps_every_row_once(tmp_path):
    interrupted(tmp_path, 5, 5, every_steps=3)
    rows = read_metrics_log(tmp_path / "metrics.jsonl")
    keys = [(row["epoch"], row.get("step", STEPS)) for row in rows]
    assert keys == [(e, s) for e in range(4) for s in (2, 4, STEPS)]


def test_metrics_log_alone_overwrites(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text("old\n")
    model = ToyModel()
    model.compile("sgd")
    model.fit(
        toy_batches(0),
        epochs=2,
        verbose=0,
        shuffle=False,
        callbacks=[MetricsLog(path)],
    )
    assert [row["epoch"] for row in read_metrics_log(path)] == [0, 1]
