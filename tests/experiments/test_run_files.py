"""Files of runs: damage, numbers that are not finite, full disks, interrupts."""

from __future__ import annotations

import json
import math
import os
import signal
import threading
import types
import zipfile

import keras
import pytest

from experiments.kit import run_files
from experiments.kit.rows import Rows
from experiments.kit.run_list import Run, run_all
from experiments.kit.weights_digest import weights_digest
from rlm_tf.command_line import json_files
from rlm_tf.training import TrainingDivergedError


def _run(name="a", train=lambda prepared, folder: {"value": 1.0}, needs=("value",)):
    return Run(name, {"seed": 1}, dict, train, needs)


# === Damage ===


def _folder(path):
    path.mkdir()


_DAMAGE = {
    "folder": _folder,
    "empty": b"",
    "garbage": b"\xff\x00\xfe garbage",
    "cut": b'{"settings": {"seed": 1}, "val',
    "deep": b"[" * 100_000,
    "null": b"null",
    "number": b"3",
    "string": b'"settings"',
    "list": b'["settings"]',
}
_FOREIGN = {
    "object": b"{}",
    "settings": b'{"settings": [1]}',
    "config": b'{"config": 3}',
    "corpus": b'{"config": {"seed": 1}, "corpus": 3}',
    "short": b'{"settings": {"seed": 1}}',
}


def _put(path, damage):
    path.parent.mkdir(parents=True, exist_ok=True)
    if callable(damage):
        damage(path)
    else:
        path.write_bytes(damage)


@pytest.mark.parametrize(
    "damage", [*_DAMAGE.values(), *_FOREIGN.values()], ids=[*_DAMAGE, *_FOREIGN]
)
def test_a_damaged_row_is_named_with_the_remedy(tmp_path, damage):
    path = tmp_path / "rows" / "a.json"
    _put(path, damage)
    with pytest.raises(ValueError, match=r"rows/a\.json is (damaged|no row)") as caught:
        run_all([_run()], tmp_path / "runs", Rows(tmp_path / "rows"), True)
    assert "remove it, and the run is made again" in str(caught.value)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300
    # What is said helps, and so does --noresume.
    run_all([_run()], tmp_path / "runs", Rows(tmp_path / "rows"), False)
    assert not path.exists()
    assert Rows(tmp_path / "rows").read("a")["value"] == 1.0


@pytest.mark.parametrize("damage", _DAMAGE.values(), ids=_DAMAGE)
def test_damaged_settings_are_named_with_the_remedy(tmp_path, damage):
    path = tmp_path / "runs" / "a" / "config.json"
    _put(path, damage)
    with pytest.raises(ValueError, match=r"runs/a/config\.json is damaged") as caught:
        run_all([_run()], tmp_path / "runs", Rows(tmp_path / "rows"), True)
    assert "remove its folder, or say --noresume" in str(caught.value)
    run_all([_run()], tmp_path / "runs", Rows(tmp_path / "rows"), False)
    assert not path.exists()


def test_what_a_row_lacks_is_named(tmp_path):
    path = tmp_path / "row.json"
    path.write_text('{"name": "a"}')
    with pytest.raises(ValueError, match="found one without loss, values"):
        json_files.read_json(path, "remove it", ("name", "loss", "values"))
    with pytest.raises(FileNotFoundError):
        json_files.read_json(tmp_path / "none.json", "remove it")


# === Numbers that are not finite ===


def test_json_is_strict_and_the_number_is_named(tmp_path):
    path = tmp_path / "row.json"
    content = {"a": [1.0, {"b": (2.0, math.inf)}], "c": math.nan}
    with pytest.raises(ValueError, match=r"row\.json is not written: a\.1\.b\.1 = inf"):
        json_files.write_json(path, content)
    assert not list(tmp_path.iterdir())
    assert json_files.with_nulls(content) == {"a": [1.0, {"b": [2.0, None]}], "c": None}
    json_files.write_json(path, json_files.with_nulls(content))
    json.loads(path.read_text(), parse_constant=pytest.fail)


def test_a_run_that_ends_diverged_gets_no_row(tmp_path, capsys):
    """As one whose loss becomes NaN; the others are made, and have theirs."""

    def diverged(prepared, folder):
        run_files.check_converged(perplexity={"valid": 9.0, "test": math.inf})

    def others(prepared, folder):
        run_files.check_converged(perplexity={"valid": 9.0, "test": 8})
        return {"value": 1.0, "evaluations": [{"loss": math.nan}, {"loss": 2.0}]}

    runs = [_run("a", diverged), _run("b", others)]
    message = r"^a: Training diverged: perplexity\.test = inf"
    with pytest.raises(TrainingDivergedError, match=message):
        run_all(runs, tmp_path, Rows(tmp_path / "rows"), True)
    assert "[1/2] a: Training diverged" in capsys.readouterr().out
    (line,) = (tmp_path / "rows" / "rows.jsonl").read_text().splitlines()
    row = json.loads(line, parse_constant=pytest.fail)["row"]
    assert row["name"] == "b"
    assert row["evaluations"] == [{"loss": None}, {"loss": 2.0}]


# === Full disks ===


def test_a_full_disk_is_named_and_the_row_before_stays(tmp_path):
    path = tmp_path / "row.json"
    json_files.write_json(path, {"a": 1})
    (tmp_path / f".row.json.{os.getpid()}").symlink_to("/dev/full")
    with pytest.raises(OSError, match=r"No space left on device: '.*/row\.json'"):
        json_files.write_json(path, {"a": 2})
    assert json.loads(path.read_text()) == {"a": 1}
    assert list(tmp_path.iterdir()) == [path]


# === Stopping ===


def test_stopping_early_is_said(capsys):
    progress = run_files.EpochProgress("run", 20)
    progress.set_model(types.SimpleNamespace(stop_training=False))
    progress.set_params({"steps": 5})
    for epoch in (9, 10):
        progress.model.stop_training = epoch == 10
        progress.on_epoch_begin(epoch)
        progress.on_epoch_end(epoch, {})
    first, second, said = capsys.readouterr().out.splitlines()
    assert "epoch 10/20" in first and "epoch 11/20" in second
    assert said.startswith("run: stopped early, after epoch 11 of 20: validation")
    # Of the last epoch there is nothing to say.
    progress.on_epoch_end(19, {})
    assert "stopped" not in capsys.readouterr().out


@pytest.fixture
def interruptible():
    """Interrupts as a shell in the foreground leaves them: others may ignore them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class _Saver:
    asked = 0

    def interrupt(self):
        self.asked += 1


@pytest.mark.usefixtures("interruptible")
def test_the_first_interrupt_asks_for_a_checkpoint_the_second_ends():
    saver = _Saver()
    reached = False
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), run_files.interruptible(saver):
        signal.raise_signal(signal.SIGINT)
        reached = saver.asked == 1
        signal.raise_signal(signal.SIGINT)
        reached = False
    assert reached and saver.asked == 1
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_after_the_last_epoch_is_not_lost():
    with pytest.raises(KeyboardInterrupt), run_files.interruptible(_Saver()):
        signal.raise_signal(signal.SIGINT)
    with run_files.interruptible(_Saver()):
        pass


def test_who_ignores_interrupts_goes_on_ignoring_them():
    saver, seen = _Saver(), []
    before = signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    try:
        with run_files.interruptible(saver):
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [1] and saver.asked == 0
    with run_files.interruptible(saver):
        pass

    def elsewhere():
        with run_files.interruptible(saver):
            seen.append(2)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert seen == [1, 2]


def test_weights_are_known_by_what_they_are(tmp_path):
    model = keras.Sequential([keras.Input([2]), keras.layers.Dense(1)])
    paths = [tmp_path / f"{name}.keras" for name in "abc"]
    model.save(paths[0])
    # A file says when it was written.
    with zipfile.ZipFile(paths[0]) as old, zipfile.ZipFile(paths[1], "w") as new:
        for name in old.namelist():
            content = b"{}" if name == "metadata.json" else old.read(name)
            new.writestr(name, content)
    model.set_weights([weight + 1 for weight in model.get_weights()])
    model.save(paths[2])
    one, same, other = map(weights_digest, paths)
    assert one == same != other
    assert weights_digest(tmp_path / "none.keras") is None
    (tmp_path / "x.safetensors").write_bytes(b"abc")
    assert weights_digest(tmp_path / "x.safetensors") is not None
