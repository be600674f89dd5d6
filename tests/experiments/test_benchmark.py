"""Tests of the binary that measures speed and memory."""

from __future__ import annotations

import dataclasses
import json
import pathlib

import numpy as np
import pytest

from experiments.benchmark import imm, kneser_ney, large_counts, latents, lstm, memory
from experiments.benchmark import running as benchmark
from experiments.benchmark.preset import PRESETS, Preset, row_names
from experiments.benchmark.processes import said_of
from experiments.benchmark.report import Report
from experiments.benchmark.stored import read_rows
from experiments.benchmark.stream import training_stream, windows
from experiments.benchmark.tables import misses, page_tables
from experiments.benchmark.timing import Line, Row
from experiments.kit.rows import Rows
from rlm_tf.command_line import run_lock
from rlm_tf.models import InBatchContexts
from tests.experiments.binaries import run_binary

SMOKE = PRESETS["smoke"]
OLD = pathlib.Path(__file__).parent / "files" / "benchmark.json"
QUIET = {"seconds": 1.0, "other_programs": 0.1}
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
    stored = {row["name"]: row["row"] for row in _lines(tmp_path)}
    assert {row["preset"] for row in stored.values()} == {"smoke"}
    times = stored["imm-8"]["numbers"]["times"]["plain"]
    assert times["repetitions"] == 2
    assert 0 < times["min_ms"] <= times["median_ms"] <= times["quartiles_ms"][1]
    assert stored["lstm-8"]["environment"]["software"]["tensorflow"].startswith("2.")
    # The IMM terms act: some positions have five predictions and more behind them.
    assert min(stored["imm-8"]["numbers"]["coverage"].values()) > 0

    before = _lines(tmp_path)
    benchmark.main(dataclasses.replace(config, resume=True))
    assert _lines(tmp_path) == before
    assert capsys.readouterr().out.count("is there already") == len(rows)


@pytest.mark.landing
def test_rows_do_not_say_where_the_data_are():
    point = large_counts.Point("/somewhere", 10, 100, 5, 1)
    kept = said_of(point)
    assert kept == {"vocabulary_size": 10, "tokens": 100, "order": 5, "seed": 1}


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


@pytest.mark.landing
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


def _lines(folder):
    return [json.loads(line) for line in (folder / "rows.jsonl").open()]


def _measured(what, *cells, numbers=None):
    return Row([Line(what, *cells)], numbers or {})


def test_report_replaces_rows_and_keeps_the_others(tmp_path):
    report = Report(tmp_path, "small")
    report.add("imm-200", _measured("second"), **QUIET)
    report.add("lstm-200", _measured("first", "1 ms", numbers={"n": 1}), **QUIET)
    again = Report(tmp_path, "small")
    assert list(again.rows) == ["lstm-200", "imm-200"]
    assert again.table() == (tmp_path / "benchmark.md").read_text()
    again.add("lstm-200", _measured("first", "2 ms"), **QUIET)
    table = (tmp_path / "benchmark.md").read_text()
    assert "| first | 2 ms |" in table and "1 ms" not in table
    assert table.index("first") < table.index("second")
    assert "Other programs" not in table
    again.add("imm-200", _measured("second"), seconds=1.0, other_programs=1.54)
    assert "not to be trusted" in again.table() and ": imm-200 1.5.\n" in again.table()


def test_report_has_the_rows_of_other_processes(tmp_path):
    one, other = (
        Report(tmp_path / name, "small", tmp_path / "rows") for name in ("1", "2")
    )
    one.add("grid", _measured("of one"), **QUIET)
    other.add("lstm-200", _measured("of the other"), **QUIET)
    one.add("memory", _measured("last"), **QUIET)
    assert [row["name"] for row in _lines(tmp_path / "rows")] == [
        "grid",
        "lstm-200",
        "memory",
    ]
    table = (tmp_path / "1" / "benchmark.md").read_text()
    assert table.index("of the other") < table.index("last") < table.index("of one")


def test_report_of_something_else(tmp_path):
    report = Report(tmp_path, "small")
    early = Report(tmp_path, "paper")
    report.add("grid", Row([], {}), seconds=1.0, other_programs=None)
    with pytest.raises(
        ValueError, match=r"preset 'small' \(grid\).*another --output_d"
    ):
        Report(tmp_path, "paper")
    with pytest.raises(ValueError, match=r"preset 'small'"):
        early.add("memory", Row([], {}), **QUIET)
    assert list(report.rows) == ["grid"]
    Rows(tmp_path).write("grid", {"preset": "small"})
    with pytest.raises(ValueError, match=r"row grid\) is damaged .* without lines"):
        Report(tmp_path, "small")


def test_rows_of_older_versions_are_read_and_stay(tmp_path):
    (tmp_path / "benchmark.json").write_bytes(OLD.read_bytes())
    report = Report(tmp_path, "small")
    assert list(report.rows) == ["lstm-200", "grid"]
    assert report.holds("grid", {"seeds": [1], "corpus": "ptb"})
    assert not report.holds("grid", {"seeds": [2], "corpus": "ptb"})
    assert "| LSTM training step, 2 x 200 | 73.5 ms |" in report.table()
    report.add("grid", _measured("anew"), **QUIET)
    assert [row["name"] for row in _lines(tmp_path)] == ["grid"]
    lines = Report(tmp_path, "small").table().splitlines()[2:4]
    assert [line.split(" | ")[0] for line in lines] == [
        "| LSTM training step, 2 x 200",
        "| anew",
    ]
    with pytest.raises(ValueError, match=r"preset 'small' \(lstm-200\)"):
        Report(tmp_path, "paper")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"rows": {', r"benchmark\.json is damaged \("),
        ('{"rows": {}}', r"benchmark\.json is damaged .* without preset"),
        ('{"preset": "small", "rows": [1]}', "expected rows by name"),
        (
            '{"preset": "small", "rows": {"grid": {}}}',
            r"benchmark\.json \(row grid\) is damaged .* without lines",
        ),
    ],
)
def test_damaged_rows_of_older_versions_are_named(text, message, tmp_path):
    (tmp_path / "benchmark.json").write_text(text)
    with pytest.raises(ValueError, match=message):
        Report(tmp_path, "small")


def _of_one_row(monkeypatch, tmp_path, **changes):
    """Returns settings under which a row `grid` is measured at once."""
    rows = {"lstm-200": lambda: 1 / 0, "grid": lambda: _measured("anew")}
    monkeypatch.setattr(benchmark, "_rows", lambda config, preset: rows)
    monkeypatch.setattr("experiments.benchmark.stream.corpus_name", lambda _: "ptb")
    return benchmark.Config(
        preset="small", rows=("grid",), output_dir=str(tmp_path), **changes
    )


def test_an_old_folder_is_resumed(tmp_path, monkeypatch, capsys):
    (tmp_path / "benchmark.json").write_bytes(OLD.read_bytes())
    config = _of_one_row(monkeypatch, tmp_path, resume=True)
    benchmark.main(dataclasses.replace(config, rows=("lstm-200", "grid")))
    assert capsys.readouterr().out.count("is there already") == 2
    assert not (tmp_path / "rows.jsonl").exists()
    benchmark.main(dataclasses.replace(config, seeds=(1, 2)))
    (line,) = _lines(tmp_path)
    assert line["row"]["inputs"] == {"seeds": [1, 2], "corpus": "ptb"}


def test_rows_may_be_in_another_folder_than_the_table(tmp_path, monkeypatch):
    config = _of_one_row(monkeypatch, tmp_path, results_dir=str(tmp_path / "results"))
    benchmark.main(config)
    assert (tmp_path / "benchmark.md").exists()
    assert [row["name"] for row in _lines(tmp_path / "results")] == ["grid"]


def test_a_row_is_measured_by_one_process(tmp_path, monkeypatch):
    config = _of_one_row(monkeypatch, tmp_path)
    with (
        run_lock.held(tmp_path / "grid"),
        pytest.raises(BlockingIOError, match="grid is being written by process"),
    ):
        benchmark.main(config)
    with run_lock.held(tmp_path / "lstm-200"):
        assert list(benchmark.main(config).rows) == ["grid"]


@pytest.mark.parametrize("preset", PRESETS)
def test_names_of_rows_are_those_that_are_measured(preset):
    measured = benchmark._rows(benchmark.Config(preset=preset), PRESETS[preset])
    assert list(measured) == row_names(PRESETS[preset])


def test_rows_of_all_presets_have_one_order():
    presets = Preset(widths=(8, 300)), Preset(widths=(200,))
    assert row_names(*presets)[:4] == ["lstm-8", "lstm-200", "lstm-300", "cells-8"]


# === Tables of the page ===


@pytest.mark.parametrize(
    ("cells", "missed"),
    [
        (("1 ms", "", "1.15 (1.1 to 1.2)", "at most 1"), True),
        (("1 ms", "", "1.00 (0.9 to 1.2)", "at most 1"), False),
        (("1 ms", "", "1,044 (900 to 1,200)", "at most 1.5"), True),
        (("1 ms", "", "1.15 (1.1 to 1.2)", ""), False),
        (("1.1 min", "", "0.003", "at most 60 s"), True),
        (("900 ms", "", "1.2", "at most 1 s"), False),
        (("10.4 GiB", "", "", "at most 6 GiB"), True),
        (("2,950 MiB", "", "", "at most 3,072 MiB"), False),
        (("9.10 min", "", "", "at most 10 min"), False),
        (("1 ms", "PyTorch: not installed", "", ""), False),
    ],
)
def test_missed_targets(cells, missed):
    assert misses(Line("step", *cells)) is missed


def test_tables_of_the_page(tmp_path):
    report = Report(tmp_path, "small")
    lstm = [
        Line("LSTM step", "2 ms", "keras.layers.LSTM, XLA: 3 ms", "0.67"),
        Line("LSTM step", "2 ms", "keras.layers.LSTM: 4 ms", "0.50", "at most 1"),
        Line("LSTM step", "2 ms", "torch.nn.LSTM: 1 ms", "2.00", "at most 1"),
    ]
    report.add("lstm-200", Row(lstm, {}), **{**QUIET, "seconds": 50.0})
    points = {"points": [{"peak_mib": 1234.4}, {"peak_mib": 5.0}]}
    report.add("latent-memory", _measured("peak", numbers=points), **QUIET)
    report.add("latents", _measured("latents"), **{**QUIET, "seconds": 100.0})
    tables = page_tables(read_rows(Rows(tmp_path)))

    def first_cells(name, cell):
        lines = tables[name].splitlines()[2:]
        return [line.strip("| ").split(" | ")[cell] for line in lines]

    # In the order of what is told; what there is no row of is left out.
    assert first_cells("telling", 2) == [
        "torch.nn.LSTM: 1 ms",
        "keras.layers.LSTM: 4 ms",
    ]
    assert first_cells("missed", 2) == ["torch.nn.LSTM: 1 ms"]
    assert [line.split(" | ")[0] for line in tables["latents"].splitlines()[2:]] == [
        "| latents",
        "| peak",
    ]
    assert "cells" not in tables
    assert tables["cost"].splitlines()[2:] == [
        "| lstm-200 | 50 s |",
        "| latents | 100 s |",
        "| latent-memory | 1 s |",
        "| all | 2.52 min |",
        "",
        "The largest process whose memory was measured: 1,234 MiB.",
    ]


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
