"""Tables and figures of latent-variable models, from rows made up for it."""

from __future__ import annotations

import dataclasses
import json
import math

import pytest

from experiments.kit.rows import Rows
from experiments.mi_vae import (
    page,
    report,
    sentences_report,
    signal,
    studies,
    symbols_report,
    tables,
    training,
)
from experiments.mi_vae.report import line_of
from rlm_tf.evaluation import LatentUsage


def _row(config, name="run", **found):
    """A row with NLL and usage by text, `{"train": (nll, usage)}`."""
    evaluation = {}
    for text, (nll, usage) in found.items():
        whole = LatentUsage(nll, usage, nll - usage, 0.9 * usage, 3, 2.0, 10, 50)
        evaluation[text] = {
            **whole._asdict(),
            "per_token": whole.per_token()._asdict(),
        }
    return {
        "name": name,
        "config": dataclasses.asdict(config),
        "evaluation": evaluation,
        "step_ms": 5.0,
    }


def _cells(text: str, start: str) -> list[str]:
    (line,) = [row for row in text.splitlines() if row.startswith(f"| {start} |")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_levels_are_shares_of_the_entropy_beside_the_published(tmp_path):
    entropy = math.log(1000)
    rows = []
    for name, config in studies.symbols([1]).items():
        # Fit worsens with usage, and no point of a line has the last level.
        share = 0.5 if config.lambda_ < 0.3 else 0.9
        rows.append(_row(config, name, train=(entropy + share, share * entropy)))
    text = symbols_report.levels_table(rows)
    cells = _cells(text, "vimco 16 kl")
    assert cells[1] == "4"
    assert [cell.split(" / ")[0] for cell in cells[2:]] == [
        "0.500",
        "0.500",
        "0.900",
        "0.900",
        "-",
    ]
    published = [9.210, 9.210, 9.215, 9.220, 9.233]
    assert [float(cell.split(" / ")[1]) for cell in cells[2:]] == pytest.approx(
        [value - math.log(10_000) for value in published], abs=6e-4
    )
    # What has no published number says so.
    cells = _cells(text, "vimco 16/1 kl")
    assert [cell.split(" / ")[1] for cell in cells[2:]] == [
        "0.460",
        "-",
        "-",
        "-",
        "7.190",
    ]
    assert _cells(text, "vimco 1/16 kl")[2].endswith(" / -")
    for draw in (symbols_report.panels_figure, symbols_report.rates_figure):
        draw(rows, tmp_path / "figure.png")
        assert (tmp_path / "figure.png").stat().st_size > 10_000


def test_several_seeds_are_means_with_their_spread():
    rows = [
        _row(config, name, train=(7.0 + 0.1 * config.seed, 2.0 + config.seed))
        for name, config in studies.symbols([1, 2, 3]).items()
        if config.estimator == "vimco" and config.seed in (1, 3)
    ]
    text = symbols_report.levels_table(rows)
    least = _cells(text, "vimco 16 kl")[2:5]
    # The third level is reached with one seed only.
    expected = f"{7.2 - math.log(1000):.3f}"
    assert [cell.split(" / ")[0] for cell in least] == [expected, expected, "-"]
    text = report.seeds_table(rows)
    cells = _cells(text, "vimco-16-kl-0.2")
    assert cells[1:4] == ["2", "7.200 ± 0.141", "4.000 ± 1.414"]
    assert report.seeds_table(rows[::2]) == ""


def test_panels_name_lines_of_the_study():
    lines = {line_of(_row(config)) for config in studies.symbols([1]).values()}
    for names in symbols_report._PANELS.values():
        for name in names:
            assert any(line.startswith(name) for line in lines), name


def test_best_run_of_sentences_is_chosen_on_validation_text(tmp_path):
    rows = []
    for name, config in studies.sentences([1]).items():
        worse = 10 * config.lambda_ + (not config.shared_dropout)
        nll = 20.0 + worse
        rows.append(
            _row(
                config,
                name,
                train=(nll - 5, config.lambda_),
                valid=(nll, config.lambda_),
                # Another choice on test text would be another run.
                test=(25.0 - worse, config.lambda_),
            )
        )
    text = sentences_report.best_table(rows)
    assert text.count("lambda 0 |") == 4
    cells = _cells(text, "vimco 4 kl")
    assert cells[2:4] == [f"{math.exp(5.0):.1f}", "5.000"]
    assert cells[5] == "92.1 / 4.523 / 0.164"
    every = sentences_report.sentences_table(rows)
    assert every.count("\n") == len(rows) + 1
    ways = {"naive": 6, "l2": 6, "shared": 12, "fit": 12}
    assert {way: every.count(f"| {way} |") for way in ways} == ways
    sentences_report.sentences_figure(rows, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000


def test_rows_come_in_the_order_of_the_study():
    wanted = list(studies.signal([1, 2]))
    rows = [
        {"name": name, "config": {"seed": seed}}
        for name, seed in (("another", 1), *((name, int(name[-1])) for name in wanted))
    ]
    found = [row["name"] for row in tables.in_order("signal", rows[::-1])]
    assert found == [*wanted, "another"]
    assert wanted != sorted(wanted)


def test_cost_is_of_the_steps_alone():
    rows = [
        # An hour and a tenth of one; pauses do not count.
        {"step_ms": 60.0, "config": {"steps": 60_000}, "seconds": 9999.0},
        {"step_ms": 36.0, "config": {"steps": 10_000}, "seconds": 9999.0},
    ]
    text = tables.cost_table({"symbols": rows})
    assert _cells(text, "symbols")[1:] == ["2", "36 to 60", "6.0 to 60.0", "1.10"]


def test_the_headline_compares_lines_at_one_level_of_usage(tmp_path):
    entropy = math.log(1000)
    rows = Rows(tmp_path, "symbols")
    excesses = {"vimco 16 renyi": 0.1, "dreg 16 renyi": 0.2, "elbo 1 kl": 0.3}
    for name, config in studies.symbols([1]).items():
        excess = excesses.get(line_of(_row(config)))
        if excess is None:
            continue
        # A point that uses latents less does not count, whatever its fit is.
        share = 0.9 if config.lambda_ > 0.3 else 0.5
        nll = entropy + (excess if share == 0.9 else 0.0)
        rows.write(name, _row(config, name, train=(nll, share * entropy)))
    line = page.headline(tmp_path)
    assert "used for 6.0 of 6.9 nats" in line
    assert "VIMCO-16 (Rényi) 0.100 (published 0.008)" in line
    assert "DReG-16 (Rényi) 0.200" in line and "ELBO 0.300" in line


@pytest.mark.landing
def test_signal_of_a_trained_model(tmp_path, monkeypatch):
    monkeypatch.setattr(signal, "_SAMPLES", (1, 2))
    monkeypatch.setattr(signal, "_REPEATS", 3)
    monkeypatch.setattr(signal, "_OBJECTIVES", {"iwae": {"objective": "iwae"}})
    smoke = studies.PRESETS["smoke"]
    rows = []
    for name, own in studies.signal([1]).items():
        config = dataclasses.replace(
            own,
            num_symbols=smoke.num_symbols,
            units=8,
            num_samples=4,
            batch_size=16,
            steps=4,
            epochs=2,
        )
        row = signal.train_and_measure(training.prepare(config), tmp_path / name)
        json.dumps(row)
        rows.append({**row, "name": name})
    normal, categorical = (row["signal"] for row in rows)
    assert [p["estimator"] for p in normal[::2]] == ["reparameterised", "stl", "dreg"]
    # VIMCO needs two samples.
    found = [(p["estimator"], p["samples"]) for p in categorical]
    assert found == [("reinforce", 1), ("reinforce", 2), ("vimco", 2)]
    assert all(p["proposal"]["noise"] > 0 for p in normal + categorical)
    assert "normal-seed1 | iwae | stl" in signal.signal_table(rows)
    signal.signal_figure(rows, tmp_path / "signal.png")
    assert (tmp_path / "signal.png").stat().st_size > 10_000
