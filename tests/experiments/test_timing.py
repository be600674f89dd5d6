"""Tests of how the studies and benchmarks time steps."""

import os
import subprocess
import sys
import time
import types

import pytest

from experiments.benchmark.timing import Timings
from experiments.kit import machine, timing
from experiments.kit.machine import OtherPrograms
from experiments.kit.timing import duration

# === Other programs ===


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


# === Projections ===


def test_what_a_step_costs_whatever_its_rows_is_not_multiplied(monkeypatch):
    calls = []

    def step_of(rows):
        return lambda: calls.append(rows) or 3.0 + 0.5 * rows

    monkeypatch.setattr(timing, "elapsed", lambda step: step())
    found = timing.projected_seconds(step_of, 100, (2, 8), 3)
    assert found == pytest.approx(3.0 + 50.0)
    # One call before each three that count.
    assert calls == [2] * 4 + [8] * 4


def test_more_rows_are_not_projected_to_take_less(monkeypatch):
    seconds = {2: 2.0, 8: 1.5}
    monkeypatch.setattr(timing, "elapsed", lambda step: step())
    found = timing.projected_seconds(lambda rows: lambda: seconds[rows], 100, (2, 8), 1)
    assert found == 1.5
