"""Counts, flags and the scarcity report, on invented rows and tiny batches."""

from __future__ import annotations

import collections
import dataclasses

import numpy as np
import pytest
from absl import flags as absl_flags

from experiments.imm_lm import projection, report, scarcity
from experiments.imm_lm.config import PRESETS, RunConfig
from experiments.imm_lm.counts import effective_counts
from experiments.kit import flags as config_flags
from experiments.kit.rows import Rows
from rlm_tf.data import contiguous_batches, load_corpus
from tests.experiments.binaries import run_binary


@pytest.mark.parametrize("bank_size", [0, 30, 1000])
@pytest.mark.parametrize("length", [1, 2])
def test_effective_counts_match_counting_by_hand(rng, length, bank_size):
    tokens = rng.integers(4, size=101).astype(np.int32)
    batches = contiguous_batches(tokens, 3, 8, prefix=0)
    expected, bank = [], []
    for step in range(batches.steps):
        (words, _), _, weights = batches.element(step)
        contexts = [
            tuple(words[row, t - length + 1 : t + 1])
            for row in range(3)
            for t in range(length - 1, 8)
            if weights[row, t] > 0
        ]
        number = collections.Counter(contexts)
        for context in contexts:
            lacking = max(6 - number[context], 0)
            expected.append(number[context] + min(bank.count(context), lacking))
        newest_first = [
            tuple(words[row, t - length + 1 : t + 1])
            for t in reversed(range(length - 1, 8))
            for row in range(3)
            if weights[row, t] > 0
        ]
        bank = (newest_first + bank)[:bank_size]
    found = effective_counts(batches, length, 4, bank_size, bank_target=6)
    assert found["mean"] == pytest.approx(np.mean(expected))
    assert found["share_alone"] == pytest.approx(np.mean(np.array(expected) == 1))
    assert found["share_below_5"] == pytest.approx(np.mean(np.array(expected) < 5))
    assert found["quantiles"]["50"] == np.median(expected)


def _row(name, arm, tokens, perplexity, text="same"):
    return {
        "name": name,
        "config": {
            "arm": arm,
            "restricted_text": text,
            "fraction": 0.5,
            "epochs": 10,
        },
        "corpus": {"name": "ptb", "train_tokens": tokens},
        "perplexity": {"valid": perplexity * 1.03, "test": perplexity},
        "interpolation": {
            source: {"mu": 0.2, "valid": perplexity, "test": perplexity}
            for source in ("same", "all")
        },
        "restricted_perplexity": {
            source: {
                name: {"perplexity": value, "tokens": 9, "impossible": 1}
                for name in ("train", "valid", "test")
            }
            for source, value in (("same", 250.0), ("all", 200.0))
        },
        "parameters": 1234,
        "machine": "x86_64, 2 cores",
        "commit": "0123456789ab",
        "step_ms": 45.0,
        "other_cores": 0.1,
        "induced_perplexity": {
            name: {"perplexity": 300.0, "tokens": 9, "left_out": 2}
            for name in ("train", "valid", "test")
        },
        "seconds": 100.0,
        "epochs": 10,
        "curve": [
            {"epoch": epoch, "val_perplexity": perplexity * (2 - epoch / 10)}
            for epoch in range(10)
        ],
    }


def _rows():
    law = {d: float(np.exp(4.0 + 300 / d**0.5)) for d in (50_000, 100_000, 200_000)}
    rows = [_row(f"none-{d}-seed1", "none", d, value) for d, value in law.items()]
    # As good as arm none would be with twice the text.
    rows.append(_row("imm-in-batch-seed1", "imm-in-batch", 100_000, law[200_000]))
    rows.append(_row("imm-all-seed1", "imm-in-batch", 50_000, law[200_000], "all"))
    return rows


def test_equivalent_text_is_read_off_the_fitted_law(tmp_path):
    table = scarcity.scarcity_table(_rows())
    assert "| 100,000 | imm-in-batch |" in table and "| 2.00x |" in table
    assert "| 50,000 | imm-in-batch-all |" in table and "| 4.00x |" in table
    assert "| 50,000 | none | 10 |" in table and "*" not in table.split("worth |")[1]
    better = _row("imm-in-batch-seed1", "imm-in-batch", 200_000, 60.0)
    extrapolated = scarcity.scarcity_table([*_rows(), better]).splitlines()[-2:]
    assert any(line.endswith("x* |") for line in extrapolated)
    scarcity.scarcity_figure(_rows(), tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 5_000


def test_runs_of_other_epochs_are_listed_but_not_fitted():
    rows = _rows()
    odd = _row("none-full-seed1", "none", 400_000, 300.0)
    odd["config"]["epochs"] = 5
    table = scarcity.scarcity_table([*rows, odd])
    assert "E = 4.000, B = 300, b = 0.500" in table
    assert "With the runs of other epochs as well: E = " in table
    assert table.endswith("| 400,000 | none | 5 | 300.00 | | |")


def test_tables_have_one_line_a_group():
    rows = [_row(f"none-seed{s}", "none", 1000, 100.0 + s) for s in (1, 2, 3)]
    table = report.perplexity_table(rows)
    assert "| none | 3 | 105.06 ± 1.03 | 102.00 ± 1.00 |" in table
    header, rule, line = table.splitlines()
    assert header.count("|") == rule.count("|") == line.count("|") == 12
    assert "mixed with P_hat of all text" in header
    induced = report.induced_table(rows)
    assert "| none | 300.00 ± 0.00 |" in induced
    assert "| Kneser-Ney of all text | 200.00 | 200.00 | 200.00 | 1 / 1 |" in induced
    said = report.provenance(rows)
    assert "1,234" in said and "0123456789ab" in said and "0.1 cores" in said


def test_settings_show_what_matters_to_the_arm():
    rows = [_row("a", "none", 1000, 100.0), _row("b", "imm-in-batch", 1000, 90.0)]
    rows[0]["config"] |= {"coefficient": 0.2, "gamma0": 0.2}
    rows[1]["config"] |= {"coefficient": 0.5, "gamma0": 0.6}
    rows[1]["perplexity"]["test"] = None
    rows[1]["curve"][-1]["imm_coverage"] = 0.4
    table = [line.split(" | ") for line in report.settings_table(rows).splitlines()]
    settings = ["arm", "coefficient", "gamma0"]
    assert table[0][1:6] == [*settings, "coverage", "lambda / coverage"]
    assert table[2] == ["| a", "none", "", "", "", "", "103.00", "100.00 |"]
    assert table[3][1:] == ["imm-in-batch", "0.5", "", "0.40", "1.25", "92.70", "- |"]


def test_counts_have_one_line_a_bank():
    rows = [_row(name, "imm-in-batch", 1000, 100.0) for name in "abcd"]
    banks = [(7000, None), (0, None), (7000, 20), (0, None)]
    for row, (size, target) in zip(rows, banks, strict=True):
        row["config"] |= {"bank_size": size, "bank_target": target, "min_count": 2}
        row["effective_counts"] = {
            "mean": 3.25,
            "share_alone": 0.4,
            "share_below_5": 0.6,
            "quantiles": {"10": 1.0, "25": 1.0, "50": 2.0, "75": 16.0, "90": 34.0},
        }
    rows.append(_row("e", "none", 1000, 100.0))
    rows[-1]["config"]["bank_size"] = 0
    rows[-1]["effective_counts"] = None
    header, rule, *lines = report.counts_table(rows).splitlines()
    assert header.count("|") == rule.count("|") == lines[0].count("|")
    assert lines[0] == "| 0 | 0 | 3.2 | 0.40 | 0.60 | 1 | 1 | 2 | 16 | 34 |"
    assert [line.split(" | ")[:2] for line in lines[1:]] == [
        ["| 7,000", "2"],
        ["| 7,000", "20"],
    ]


def test_curves_are_the_best_so_far_of_every_arm(tmp_path):
    from matplotlib import pyplot

    rows = [_row(f"none-seed{s}", "none", 1000, 100.0 * s) for s in (1, 3)]
    rows[0]["curve"][4]["val_perplexity"] = None
    rows[1]["curve"][5]["val_perplexity"] = 10_000.0
    figure, axes = pyplot.subplots()
    report.draw_learning_curves(axes, rows)
    (line,) = axes.get_lines()
    expected = 200.0 * (2 - np.arange(10) / 10)
    expected[4] = (100 * 1.7 + 300 * 1.6) / 2
    expected[5] = (100 * 1.5 + 300 * 1.6) / 2
    np.testing.assert_allclose(line.get_ydata(), expected)
    pyplot.close(figure)
    report.learning_curves(rows, tmp_path / "curves.png", "title")
    assert (tmp_path / "curves.png").stat().st_size > 5_000


def test_curves_of_runs_that_diverged(tmp_path):
    from matplotlib import pyplot

    late, never = (
        _row(f"{arm}-seed1", arm, 1000, 100.0) for arm in ("none", "noising")
    )
    for point in late["curve"][:5]:
        point["val_perplexity"] = None
    for point in never["curve"]:
        point["val_perplexity"] = None
    figure, axes = pyplot.subplots()
    report.draw_learning_curves(axes, [never])
    assert not axes.get_lines()
    report.draw_learning_curves(axes, [late, never])
    labels = [line.get_label() for line in axes.get_lines()]
    assert labels == [f"none, {late['curve'][-1]['val_perplexity']:.1f} in the end"]
    assert axes.get_ylim()[1] == pytest.approx(1.05 * 100 * (2 - 0.5))
    pyplot.close(figure)


def test_report_binary_prints_every_study_and_draws_figures(tmp_path):
    for study, rows in (("main", _rows()), ("tuning", _rows()[:2])):
        for row in rows:
            Rows(tmp_path / "rows", study).write(row["name"], row)
    done = run_binary(
        "imm_report",
        f"--results_dir={tmp_path / 'rows'}",
        f"--output_dir={tmp_path / 'figures'}",
        check=True,
    )
    for expected in ("## main", "## tuning", "## scarcity law, valid", "| 2.00x |"):
        assert expected in done.stdout
    figures = sorted(path.name for path in (tmp_path / "figures").iterdir())
    assert figures == ["imm_lm_main.png", "imm_lm_scarcity.png"]


def test_reports_of_folders_without_rows_fail_in_one_line(tmp_path):
    for name in ("imm_report", "mogrifier_report"):
        done = run_binary(name, f"--results_dir={tmp_path}", f"--output_dir={tmp_path}")
        assert done.returncode == 1 and not done.stdout
        assert done.stderr.startswith(f"error: --results_dir={tmp_path} holds no rows")
        assert done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_projection_counts_one_sample_and_the_others_at_times():
    seconds = {"plain": 2.0, "one sample": 12.0, "two samples": 21.0, "in-batch": 3.0}
    hours = projection.hours_per_epoch(seconds, 1800, k=11, every=5)
    assert hours == {
        "plain": 1.0,
        "in-batch": 1.5,
        "sampled, k=11 at every 5th step": (12.0 + 9.0 * 10 / 5) / 2,
    }


@pytest.mark.landing
def test_projection_times_a_few_steps(monkeypatch):
    monkeypatch.setattr(projection, "_SECONDS", 0.0)
    config = dataclasses.replace(
        PRESETS["smoke"], arm="imm-sampled", window=4, width=4, k=3, every=2
    )
    inputs = projection.prepare(config, load_corpus("python-docs"), 1)
    row = projection.project(config, inputs, 1)
    assert set(row["seconds_per_step"]) == {
        "plain",
        "one sample",
        "two samples",
        "in-batch",
    }
    assert all(value > 0 for value in row["seconds_per_step"].values())
    assert row["steps_per_epoch"] > 10


@dataclasses.dataclass(frozen=True)
class _Settings:
    test_rate: float = config_flags.setting(0.5, "A rate.")
    test_limit: int | None = config_flags.setting(None, "A limit.")
    test_fast: bool = config_flags.setting(False, "Whether.")


def test_flags_override_only_what_is_given():
    values = absl_flags.FlagValues()
    config_flags.define_flags(_Settings, flag_values=values)
    values(["program", "--test_limit=7", "--test_fast"])
    found = config_flags.config_from_flags(_Settings(test_rate=0.25), values)
    assert found == _Settings(0.25, 7, True)
    values["test_limit"].value = "none"
    assert config_flags.config_from_flags(_Settings(), values).test_limit is None
    values["test_rate"].value = "much"
    with pytest.raises(
        ValueError, match="--test_rate must be of type float, found 'much'"
    ):
        config_flags.config_from_flags(_Settings(), values)


@pytest.mark.parametrize(
    "config",
    [
        PRESETS["small"],
        PRESETS["paper"],
        RunConfig(arm="imm-in-batch", corpus="ptb", fraction=1 / 8, bank_target=20),
        RunConfig(max_decays=None, separate_clipping=True, seed=3),
    ],
)
def test_the_command_of_a_row_gives_its_settings(config):
    command = config.command.split()
    assert command[:3] == ["python", "-m", "experiments.imm_lm"]
    given = dict(part.removeprefix("--").split("=") for part in command[3:])
    assert given.pop("seeds") == str(config.seed) and "arm" in given
    values = absl_flags.FlagValues()
    config_flags.define_flags(RunConfig, without=("seed",), flag_values=values)
    values([" ".join(command[:3]), *command[3:]], known_only=True)
    found = config_flags.config_from_flags(PRESETS["small"], values)
    assert dataclasses.replace(found, seed=config.seed) == config
