"""Tests of the tables and figures of the runs of recurrent cells."""

from experiments.kit.rows import Rows
from experiments.mogrifier_lm import (
    evidence_report,
    published,
    report,
    reporting,
    tables,
    ways_report,
)
from experiments.mogrifier_lm.studies import STUDIES


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
    assert lines[2] == "| LSTM | 6.500 | 4.000 | +2.500 |"


def test_gates_of_those_that_have_them():
    lines = evidence_report.gates_table(ROWS).splitlines()
    assert len(lines) == 4
    assert lines[2] == "| LSTM | 1 | 0.300 / 0.100 | 0.500 / 0.100 | 0.600 / 0.100 |"
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
    # Once: the page has it.
    assert printed.count("occurrences in the training") == 1
    drawn = [path.name for path in (tmp_path / "figures").iterdir()]
    assert drawn == ["mogrifier_lm_cells.png"]


def _tables(projection=None, **rows):
    return tables.tables(
        {name: rows.get(name, []) for name in STUDIES}, projection or {}
    )


def _lines(text):
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
    ]


def _evaluated(row, samples=30, **perplexities):
    ways = {
        way: {"valid": valid, "test": None if valid is None else valid - 1}
        for way, valid in perplexities.items()
    }
    return {**row, "ways": {"settings": {"samples": samples}, "perplexity": ways}}


def test_there_are_tables_of_what_has_rows():
    assert set(_tables(cells=ROWS)) == {"cells", "words", "recovery", "gates", "cost"}
    assert set(_tables(trials=ROWS)) == {"trials", "cost"}


def test_cells_stand_beside_the_lstm_of_the_same_seed_and_the_thesis():
    # The differences are -5 and -7: their standard error is 1.
    rows = [*ROWS, _row("mogrifier", 2, 97.0, rounds=5)]
    lines = _lines(_tables(cells=rows)["cells"])
    assert lines[2][0] == "LSTM" and lines[2][4:] == ["", "57.5"]
    assert lines[3][4:] == ["-6.00 ± 1.00", "54.1"]
    assert lines[4][4:] == ["-1.00", ""]


def test_variants_stand_in_the_order_of_their_list_below_the_cells():
    rows = [_row("unknown", 1, 90.0), _row("rank-3", 1, 91.0), _row("mlstm", 1, 92.0)]
    lines = _lines(_tables(cells=ROWS, variants=rows)["variants"])
    assert [line[0] for line in lines[2:]] == [
        "LSTM, 2 seeds",
        "Mogrifier, 5 rounds, rank 40",
        "multiplicative LSTM",
        "rank 3",
    ]
    assert lines[4] == ["multiplicative LSTM", "92.00", "90.00", "93.00", "7", "57.8"]


def test_what_was_measured_by_hand_stands_below_its_model_only():
    by_hand = published.FOUR_SAMPLES_WITH_TEMPERATURE
    own = _row("4-samples", 1, by_hand.model + 0.001)
    lines = _lines(_tables(variants=[own])["variants"])
    name = "4 dropout samples, with a temperature"
    assert lines[3] == [name, "157.15", "153.04", "", "7", ""]
    other = _row("4-samples", 1, by_hand.model + 1)
    assert name not in _tables(variants=[other])["variants"]


def test_characters_have_bits():
    rows = [_row("characters-lstm", 1, 4.0), _row("wikitext-2-lstm", 1, 300.0)]
    rows[0]["corpus"] = {"name": "ptb-char"}
    lines = _lines(_tables(further=rows)["further"])
    assert lines[2][:2] == ["WikiText-2", "LSTM"] and lines[2][5] == ""
    assert lines[3][3:7] == ["4.000", "2.000", "2.000 / 1.000", "5.000"]
    assert lines[3][7] == "1.163 / 1.143 bits"


def test_cells_stand_beside_each_other_in_every_way():
    ways = {"static": 90.0, "dynamic, 4 masks": None, "static, 4 masks": 80.0}
    rows = [
        _evaluated(ROWS[0], **ways, **{"static, 30 masks": 70.0}),
        _evaluated(ROWS[2], static=85.0),
        ROWS[3],
    ]
    assert _lines(ways_report.cells_table(rows))[2:] == [
        ["as trained", "100.00 / 98.00", "95.00 / 93.00", "", ""],
        ["temperature", "90.00 / 89.00", "85.00 / 84.00", "55.8 / 54.6", "52.1 / 51.0"],
        [
            "temperature, dynamic, 4 masks",
            "diverged / diverged",
            "-",
            "48.6 / 48.4",
            "44.9 / 44.8",
        ],
        ["temperature, 4 masks", "80.00 / 79.00", "-", "", ""],
        ["temperature, 30 masks", "70.00 / 69.00", "-", "55.5 / 54.1", "51.4 / 50.1"],
    ]


def test_the_plain_lstm_stands_before_everything():
    plain = _row("plain-lstm", 1, published.PLAIN_LSTM_LIKE_EVERYTHING.model)
    rows = [_row("everything", 1, 140.0), plain]
    rows = [_evaluated(row, dynamic=120.0) for row in rows]
    lines = _lines(_tables(combined=rows)["combined"])
    assert lines[0] == ["valid / test perplexity", "plain LSTM", "everything"]
    assert lines[2] == ["epochs, minutes", "3, 10", "3, 10"]
    assert lines[4] == ["temperature, dynamic", "120.00 / 119.00", "120.00 / 119.00"]
    assert lines[5][1:] == ["114.67 / 112.42", "120.00 / 119.00"]


def test_a_trial_that_is_a_seed_of_the_cells_is_counted_once():
    trial = {**ROWS[0], "seconds": 601.0}
    text = _tables(trials=[trial], cells=[trial, ROWS[1], ROWS[2]])["cost"]
    assert _lines(text)[2:] == [
        ["trials", "1", "10 to 10", "0.2"],
        ["cells", "2", "10 to 10", "0.3"],
    ]


def test_hours_are_those_of_presets():
    found = {
        "width": 951,
        "parameters": 23_998_024,
        "step_seconds": 2.659,
        "steps_per_epoch": 1208,
        "epochs": 962,
        "hours_of_all_epochs": 1147.8,
    }
    text = _tables({"paper-ptb-lstm-lstm-seed1": found, "other": {}})["projection"]
    assert _lines(text)[2:] == [
        ["`paper-ptb-lstm`", "24", "951", "2.66", "1,208", "962", "1,148"]
    ]
