"""Tests of the binary that measures speed and memory."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import time
import types

import numpy as np
import pytest

from experiments.benchmark import imm, kneser_ney, latents, lstm, memory
from experiments.benchmark import running as benchmark
from experiments.benchmark.preset import PRESETS, Preset
from experiments.benchmark.report import Report
from experiments.benchmark.stream import training_stream, windows
from experiments.benchmark.timing import Line, Row, Timings
from experiments.kit import machine
from experiments.kit.machine import OtherPrograms
from experiments.kit.timing import duration
from rlm_tf.models import InBatchContexts
from tests.experiments.binaries import run_binary

SMOKE = PRESETS["smoke"]
ONE_POINT = Preset(crosstalk_ks=(1,), direct_ks=(), memory_processes=1)


# === The whole ===


@pytest.mark.landing
def test_smoke_preset(tmp_path, capsys):
    rows = ("lstm-8", "imm-8", "sampler-8", "kneser-ney")
    config = benchmark.Config(rows=rows, output_dir=str(tmp_path))
    report = benchmark.main(config)
    assert tuple(report.rows) == rows
    table = (tmp_path / "benchmark.md").read_text()
    assert table in capsys.readouterr().out
    whats = [line.split(" | ")[0].strip("| ") for line in table.splitlines()[2:]]
    for expected in (
        "LSTM training step, 2 x 8",
        "IMM step, 2 x 8, in batch, one backward pass",
        "IMM step, 2 x 8, with a bank of 180",
        "IMM step, 2 x 8, separate clipping, evaluation pass",
        "IMM step, 2 x 8, paper's sampler, k = 1 (crosstalk gradient)",
        "Kneser-Ney fit, order 3, 2,000 tokens",
    ):
        assert expected in whats
    stored = json.loads((tmp_path / "benchmark.json").read_text())["rows"]
    times = stored["imm-8"]["numbers"]["times"]["plain"]
    assert times["repetitions"] == 2
    assert 0 < times["min_ms"] <= times["median_ms"] <= times["quartiles_ms"][1]
    assert stored["lstm-8"]["environment"]["software"]["tensorflow"].startswith("2.")
    # The IMM terms act: some positions have five predictions and more behind them.
    assert min(stored["imm-8"]["numbers"]["coverage"].values()) > 0

    before = (tmp_path / "benchmark.json").read_bytes()
    benchmark.main(dataclasses.replace(config, resume=True))
    assert (tmp_path / "benchmark.json").read_bytes() == before
    assert capsys.readouterr().out.count("is there already") == len(rows)


@pytest.mark.landing
def test_memory_of_a_point_in_a_process_of_its_own():
    row = memory.measure("smoke", ONE_POINT, "", (1,))
    (point,) = row.numbers["points"]
    assert point["gradient"] == "crosstalk" and point["k"] == 1
    assert point["peak_mib"] == point["baseline_mib"] + point["step_mib"]
    assert 0 < point["step_mib"] < 500 < point["peak_mib"] < 5_000


@pytest.mark.landing
def test_failure_in_the_process_is_told(tmp_path):
    preset = Preset(crosstalk_ks=(0,), direct_ks=())
    with pytest.raises(RuntimeError, match=r"k=0.*status 1: ValueError: .*`k`"):
        memory.measure("smoke", preset, "", (1,))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"preset": "huge"}, "smoke, small, paper; found 'huge'"),
        ({"rows": ("lstm-8", "lstm-9")}, "found lstm-9"),
        ({"seeds": ()}, "at least one integer"),
    ],
)
def test_mistakes(changes, message, tmp_path):
    config = benchmark.Config(**{"output_dir": str(tmp_path), **changes})
    with pytest.raises(ValueError, match=message):
        benchmark.main(config)


def test_help_and_mistake_on_the_command_line():
    shown = run_binary("benchmark", "--helpshort").stdout
    for field in dataclasses.fields(benchmark.Config):
        assert f"--{field.name}" in shown.replace("--[no]", "--")
    assert "kneser-ney fits and distributions" in shown
    result = run_binary("benchmark", "--preset=huge")
    assert result.returncode == 1
    assert result.stderr.startswith("error: --preset must be one of")
    assert result.stderr.count("\n") == 1


# === Report ===


def test_report_replaces_rows_and_keeps_the_others(tmp_path):
    order = ["a", "b"]
    report = Report(tmp_path, "small")
    quiet = {"order": order, "seconds": 1.0, "other_programs": 0.1}
    report.add("b", Row([Line("second")], {}), **quiet)
    report.add("a", Row([Line("first", ours="1 ms")], {"n": 1}), **quiet)
    again = Report(tmp_path, "small")
    assert list(again.rows) == order
    assert again.table() == (tmp_path / "benchmark.md").read_text()
    again.add("a", Row([Line("first", ours="2 ms")], {}), **quiet)
    table = (tmp_path / "benchmark.md").read_text()
    assert "| first | 2 ms |" in table and "1 ms" not in table
    assert table.index("first") < table.index("second")
    assert "Other programs" not in table
    again.add("b", Row([Line("second")], {}), **{**quiet, "other_programs": 1.54})
    assert "not to be trusted" in again.table() and ": b 1.5.\n" in again.table()


def test_report_of_something_else(tmp_path):
    report = Report(tmp_path, "small")
    report.add("a", Row([], {}), ["a"], seconds=1.0, other_programs=None)
    with pytest.raises(ValueError, match=r"preset 'small'.*another --output_dir"):
        Report(tmp_path, "paper")
    (tmp_path / "benchmark.json").write_text('{"rows": {')
    with pytest.raises(ValueError, match=r"benchmark\.json is not a file of this"):
        Report(tmp_path, "small")


def test_other_programs_are_those_of_other_processes(tmp_path, monkeypatch):
    seconds, own, busy = [100.0], [7.0], tmp_path / "stat"
    ticks = os.sysconf("SC_CLK_TCK")

    def machine_has_worked(cores_seconds: float) -> None:
        # user, nice, system, and the time spent idle, which does not count.
        user, nice, system = (int(cores_seconds * ticks * f) for f in (0.5, 0.25, 0.25))
        busy.write_text(f"cpu  {user} {nice} {system} 123456 7\ncpu0 1 2 3 4\n")

    monkeypatch.setattr(machine, "_STATISTICS", busy)
    monkeypatch.setattr(machine, "_own_seconds", lambda: own[0])
    clock = types.SimpleNamespace(perf_counter=lambda: seconds[0])
    monkeypatch.setattr(machine, "time", clock)
    machine_has_worked(40.0)
    others = OtherPrograms()
    seconds[0], own[0] = 104.0, 9.0
    machine_has_worked(44.0)
    assert others.cores() == pytest.approx((4.0 - 2.0) / 4.0)
    own[0] = 12.0
    assert others.cores() == 0.0
    machine_has_worked(1000.0)
    assert others.cores() == os.cpu_count()
    busy.unlink()
    assert others.cores() is None


def test_another_process_is_counted():
    others = OtherPrograms()
    code = "import time; e = time.time() + 1\nwhile time.time() < e: pass"
    process = subprocess.Popen([sys.executable, "-c", code])
    time.sleep(0.9)
    # The process has not ended: it does not count as one of our own yet.
    foreign = others.cores()
    process.wait()
    if foreign is None:
        pytest.skip("this system does not tell how busy its processors are")
    assert foreign > 0.4


# === Timing ===


def test_ratios_are_taken_within_a_round():
    timings = Timings()
    for slow_moment in (1.0, 100.0, 1.0, 1.0, 1.0):
        timings.add("a", 2e-3 * slow_moment)
        timings.add("b", 4e-3 * slow_moment)
    assert timings.ratio("a", "b") == "0.50 (0.50 to 0.50)"
    assert timings.text("b") == "4.00 ms"
    numbers = timings.numbers()["a"]
    assert numbers["repetitions"] == 5
    assert numbers["min_ms"] == numbers["median_ms"] == pytest.approx(2.0)


def test_functions_run_in_turn_after_the_warm_up():
    called = []
    steps = {"a": lambda: called.append("a"), "b": lambda: called.append("b")}
    timings = Timings()
    timings.run(steps, rounds=3, warm_up=2)
    assert "".join(called[:4]) == "aabb"
    rounds = [set(called[first : first + 2]) for first in (4, 6, 8)]
    assert rounds == [{"a", "b"}] * 3
    assert {name: len(s) for name, s in timings.seconds.items()} == {"a": 3, "b": 3}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (12.3e-6, "12.3 us"),
        (0.5, "500 ms"),
        (1.0, "1.00 s"),
        (119.0, "119 s"),
        (600.0, "10.0 min"),
        (36_000.0, "10.0 h"),
    ],
)
def test_durations(seconds, text):
    assert duration(seconds) == text


# === Parts ===


def test_operations_of_a_step_are_those_of_its_products():
    preset = Preset(vocabulary_size=7, batch_size=2, window=3)
    width, forward = 5, 0
    for _ in range(2):  # layers: inputs and states to four gates
        forward += 2 * (2 * 3) * (width + width) * (4 * width)
    forward += 2 * (2 * 3) * width * 7
    assert lstm.step_operations(preset, width) == 3 * forward


def test_operations_of_a_latent_step_are_three_products_with_the_kernel():
    preset = Preset(vocabulary_size=7, latent_samples=3, latent_batch=2)
    assert latents.step_operations(preset) == 3 * 2 * (3 * 2) * 128 * 7


@pytest.mark.landing
def test_smoke_row_of_latents(tmp_path):
    config = benchmark.Config(rows=("latents",), output_dir=str(tmp_path))
    lines = benchmark.main(config).rows["latents"]["lines"]
    peers = [line["peer"] for line in lines]
    for expected in (
        "its decoder alone",
        "one sample (reinforce)",
        "one sample (dreg)",
    ):
        assert any(expected in peer for peer in peers)
    assert {line["what"][:4] for line in lines} == {"VIMC", "DREG"}


def test_long_steps_of_the_sampler_are_projected():
    preset = dataclasses.replace(SMOKE, longest_step=0.0, sampled_ks=(1, 2))
    stream = training_stream("", preset.vocabulary_size)
    row = imm.measure_sampled(preset, lambda: stream, 8, (1,))
    assert all(
        "projected" in line.ours and "projected" in line.ratio for line in row[0]
    )
    assert set(row.numbers["projected_s"]) == {"1", "2"}


def test_stream_gives_frequent_words_small_ids():
    whole = training_stream("", 20_000)
    counts = np.bincount(whole.tokens)
    assert np.all(np.diff(counts) <= 0)
    cut = training_stream("", 50)
    np.testing.assert_array_equal(cut.tokens, np.minimum(whole.tokens, 49))
    (tokens, start), targets, _ = windows(cut, 3, 6, 2)[1]
    np.testing.assert_array_equal(tokens[0, 1:], targets[0, :-1])
    assert np.all(start == 0)


def test_distinct_contexts():
    tokens = np.array([0, 1, 0, 1, 2])
    found = kneser_ney.distinct_contexts(tokens, 2, 10, seed=3)
    assert sorted(map(tuple, found)) == [(0, 1), (1, 0), (1, 2)]
    assert len(kneser_ney.distinct_contexts(tokens, 1, 2, seed=3)) == 2


def test_wrapped_model_trains_the_same_language_model_as_the_plain_step():
    stream = training_stream("", SMOKE.vocabulary_size)
    wrapped = imm.wrapped_model(SMOKE, stream, 8, 1, InBatchContexts())
    plain = imm.language_model(SMOKE, 8, 1, clip_norm=5.0)
    assert wrapped.clip_norm == plain.clip_norm
    assert wrapped.loss_scale == plain.loss_scale
    for ours, theirs in zip(
        wrapped.model.trainable_variables, plain.trainable_variables, strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)
