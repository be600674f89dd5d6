"""Counts, flags and reports, on invented rows and tiny batches."""

from __future__ import annotations

import collections
import dataclasses

import numpy as np
import pytest
from absl import flags as absl_flags

from experiments.imm_lm import curves, projection
from experiments.imm_lm.config import PRESETS, RunConfig
from experiments.imm_lm.counts import effective_counts
from experiments.kit.rows import Rows
from rlm_tf.command_line import flags as config_flags
from rlm_tf.data import contiguous_batches, load_corpus
from tests.experiments.binaries import run_binary
from tests.experiments.imm_rows import row_of, rows_of_a_law


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


def test_curves_are_the_best_so_far_of_every_arm(tmp_path):
    from matplotlib import pyplot

    rows = [row_of(f"none-seed{s}", "none", 1000, 100.0 * s) for s in (1, 3)]
    rows[0]["curve"][4]["val_perplexity"] = None
    rows[1]["curve"][5]["val_perplexity"] = 10_000.0
    figure, axes = pyplot.subplots()
    curves.draw_learning_curves(axes, rows)
    (line,) = axes.get_lines()
    expected = 200.0 * (2 - np.arange(10) / 10)
    expected[4] = (100 * 1.7 + 300 * 1.6) / 2
    expected[5] = (100 * 1.5 + 300 * 1.6) / 2
    np.testing.assert_allclose(line.get_ydata(), expected)
    pyplot.close(figure)
    curves.learning_curves(rows, tmp_path / "curves.png", "title")
    assert (tmp_path / "curves.png").stat().st_size > 5_000


def test_curves_of_runs_that_diverged(tmp_path):
    from matplotlib import pyplot

    late, never = (
        row_of(f"{arm}-seed1", arm, 1000, 100.0) for arm in ("none", "noising")
    )
    for point in late["curve"][:5]:
        point["val_perplexity"] = None
    for point in never["curve"]:
        point["val_perplexity"] = None
    figure, axes = pyplot.subplots()
    curves.draw_learning_curves(axes, [never])
    assert not axes.get_lines()
    curves.draw_learning_curves(axes, [late, never])
    labels = [line.get_label() for line in axes.get_lines()]
    assert labels == [f"none, {late['curve'][-1]['val_perplexity']:.1f} in the end"]
    assert axes.get_ylim()[1] == pytest.approx(1.05 * 100 * (2 - 0.5))
    pyplot.close(figure)


def test_report_binary_prints_every_study_and_draws_figures(tmp_path):
    for study, rows in (("main", rows_of_a_law()), ("tuning", rows_of_a_law()[:2])):
        for row in rows:
            Rows(tmp_path / "rows", study).write(row["name"], row)
    done = run_binary(
        "imm_report",
        f"--results_dir={tmp_path / 'rows'}",
        f"--output_dir={tmp_path / 'figures'}",
        check=True,
    )
    for expected in ("## main", "## tuning", "## runs of tuning", "| 2.00x / 2.00x |"):
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
