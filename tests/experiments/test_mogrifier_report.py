"""Tests of the tables and figures of the runs of recurrent cells."""

from experiments.kit.rows import Rows
from experiments.mogrifier_lm import evidence_report, report, reporting


def _row(name, seed, perplexity, rounds=0, cell="lstm", gates=True):
    evidence = {
        "by_frequency": [
            {"least": 0, "tokens": 10, "nats": 9.0 + seed},
            {"least": 1, "tokens": 2000, "nats": 7.0},
            {"least": 10, "tokens": 30, "nats": 5.0},
        ],
        "recovery": {"after_large": 5.0 + seed, "after_others": 4.0},
    }
    if gates:
        evidence["gates"] = [{"i": [0.2 * seed, 0.1], "f": [0.5, 0.1], "o": [0.6, 0.1]}]
    point = {"averaged_loss": 5.0, "averaged_raw_loss": 5.1}
    return {
        "name": f"{name}-seed{seed}",
        "corpus": {"name": "ptb"},
        "config": {"rounds": rounds, "seed": seed, "cell": cell, "rate": 0.1},
        "perplexity": {"valid": perplexity, "test": perplexity - 2},
        "raw_valid_perplexity": perplexity + 1,
        "width": 7,
        "parameters": 1000,
        "step_ms": 12.0,
        "seconds": 600.0,
        "recoveries": 0,
        "curve": [{"epoch": epoch, **point} for epoch in range(3)],
        "evidence": evidence,
    }


ROWS = [
    _row("lstm", 1, 100.0),
    _row("lstm", 2, 104.0),
    _row("mogrifier", 1, 95.0, rounds=5),
    _row("rlstm", 1, 99.0, cell="rlstm", gates=False),
]


def test_seeds_are_averaged():
    text = report.results_table(ROWS)
    assert "| lstm | 2 | 102.00 ± 2.83 | 100.00 ± 2.83 | 103.00 ± 2.83 | 7 |" in text
    assert "| mogrifier | 1 | 95.00 | 93.00 |" in text


def test_words_by_frequency():
    lines = evidence_report.frequency_table(ROWS).splitlines()
    assert lines[2] == "| 0 | 10 | 10.500 | 10.000 | 10.000 |"
    assert lines[3].startswith("| 1 to 9 | 2,000 |")
    assert lines[4].startswith("| 10 or more | 30 |")


def test_recovery():
    lines = evidence_report.recovery_table(ROWS).splitlines()
    assert lines[2] == "| lstm | 6.500 | 4.000 | +2.500 |"


def test_gates_of_those_that_have_them():
    lines = evidence_report.gates_table(ROWS).splitlines()
    assert len(lines) == 4
    assert lines[2] == "| lstm | 1 | 0.300 / 0.100 | 0.500 / 0.100 | 0.600 / 0.100 |"
    assert evidence_report.gates_table(ROWS[3:]) == ""


def test_rounds_are_those_of_one_setting(tmp_path, monkeypatch):
    drawn = {}
    monkeypatch.setattr(
        report, "save", lambda figure, path: drawn.setdefault("figure", figure)
    )
    other = _row("rounds-9", 1, 1.0, rounds=9)
    other["config"]["rate"] = 0.2
    rows = [*ROWS, _row("rounds-2", 1, 97.0, rounds=2), other]
    report.rounds_figure(rows, tmp_path / "rounds.png")
    (axes,) = drawn["figure"].axes
    assert list(axes.lines[0].get_xdata()) == [0, 2, 5]
    assert list(axes.lines[0].get_ydata()) == [102.0, 97.0, 95.0]


def test_reports_what_is_there(tmp_path, capsys):
    for row in ROWS:
        Rows(tmp_path / "rows", "cells").write(row["name"], row)
    reporting.write_report(tmp_path / "rows", tmp_path / "figures")
    printed = capsys.readouterr().out
    assert printed.startswith("## cells") and "occurrences in the training" in printed
    drawn = [path.name for path in (tmp_path / "figures").iterdir()]
    assert drawn == ["mogrifier_lm_cells.png"]
