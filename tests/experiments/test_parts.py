"""The binaries that are made of parts: reinforce, logistic, consistency."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from experiments.imm_logistic import gains
from experiments.imm_reinforce import report as reinforce_report
from experiments.imm_reinforce import study as reinforce_study
from experiments.kit.grid_config import ReinforceConfig
from experiments.kit.rows import Rows
from rlm_tf.models import published_reinforce_ratio
from tests.experiments.binaries import ROOT, run_binary

_QUESTIONS = (
    "finite_sample",
    "restrictions",
    "text_restrictions",
    "coefficient_rules",
    "text_coefficients",
    "imperfect",
    "regularisers",
    "text_regularisers",
    "digits",
)
_FILES = {
    "imm_reinforce": ("figure3", "search", "figure5"),
    "imm_logistic": ("figure1", "figure2", "figure4", "rule", "tuning", "choices"),
    "imm_consistency": ("proposition", "curve", "bias"),
    "imm_questions": _QUESTIONS,
}
_FIGURES = {
    "imm_reinforce": ("figure3", "search", "figure5"),
    "imm_logistic": ("figure1", "figure2", "figure4"),
    "imm_consistency": ("curve", "bias"),
    "imm_questions": _QUESTIONS,
}


@pytest.mark.landing
@pytest.mark.parametrize("name", _FILES)
def test_smoke_preset(name, tmp_path):
    flags = ["--preset=smoke", f"--output_dir={tmp_path}"]
    done = run_binary(name, *flags)
    assert done.returncode == 0, done.stderr
    assert "InitializeLog" not in done.stderr
    for part in _FILES[name]:
        numbers = Rows(tmp_path / "results").read(part)
        assert f"--parts={part}" in numbers["command"]
        assert "nan" not in json.dumps(numbers).lower()
    for figure in _FIGURES[name]:
        path = tmp_path / f"{name}_{figure}.png"
        assert path.stat().st_size > 5_000
    text = (tmp_path / f"{name}.md").read_text()
    assert text in done.stdout and text.count("|") > 30
    # All is done: again it only reports; other settings are refused.
    again = run_binary(name, *flags)
    assert again.stdout.count("done before") == len(_FILES[name])
    field = {
        "imm_consistency": "steps",
        "imm_logistic": "seed",
        "imm_reinforce": "runs",
        "imm_questions": "runs",
    }
    other = run_binary(name, *flags, f"--{field[name]}=7")
    assert other.returncode == 1
    assert f"{field[name]} was" in other.stderr and "error: " in other.stderr


def test_mistakes(tmp_path):
    flags = [f"--output_dir={tmp_path}", "--parts=all"]
    done = subprocess.run(
        [sys.executable, "-m", "experiments.imm_consistency", *flags],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert "InitializeLog" not in done.stderr
    assert "error: --parts must be some of proposition, curve, bias" in done.stderr


# === REINFORCE ===


def test_the_published_ratio_has_two_steps():
    assert [published_reinforce_ratio(n) for n in (10, 175, 200, 400, 450, 500)] == [
        0.2,
        0.2,
        0.1,
        0.1,
        0.1,
        0.1,
    ]


def test_differences_are_in_standard_errors():
    """Published: 2.4844 +/- 1.3 at 50 epochs without IMM, say; ours far above."""
    mean, _, _, deviation = reinforce_report.reference.FIGURE_3["none"][50]
    returns = [mean + 1.0, mean + 3.0]
    numbers = {"cells": [{"arm": "none", "epochs": 50, "returns": returns}]}
    found = reinforce_report.differences(numbers)["none", 50]
    # The sample variance of the two is 2, of their mean 1.
    assert found == pytest.approx(2.0 / np.sqrt(1.0 + deviation**2 / 30))
    text = reinforce_report.agreement(numbers)
    assert ("by more than three: 0" in text) == (abs(found) <= 3)


def test_cells_of_figure_3_are_the_published_ones():
    """At 50 and 75 epochs, where IMM gains most: many standard errors."""
    config = ReinforceConfig(epochs=(50, 75), search_epochs=(50,))
    numbers = reinforce_study.figure_3(config)
    distances = reinforce_report.differences(numbers)
    assert len(distances) == 8
    assert max(map(abs, distances.values())) < 3
    means = {(c["arm"], c["epochs"]): np.mean(c["returns"]) for c in numbers["cells"]}
    for epochs in config.epochs:
        assert means["max-utility", epochs] > means["none", epochs] + 4


# === Logistic regression ===


def test_equivalent_sizes_by_hand():
    sizes, baseline = [2, 4, 8], [0.5, 0.7, 0.8]
    found = gains.equivalent_sizes(sizes, baseline, [0.6, 0.75, 0.9])
    np.testing.assert_allclose(found[:2], [3.0, 6.0])
    assert np.isnan(found[2])
    # A curve that dips is made monotone; below its start is its start.
    found = gains.equivalent_sizes([1, 2, 3], [0.6, 0.5, 0.8], [0.55, 0.7, 0.8])
    np.testing.assert_allclose(found, [1.0, 2.5, 3.0])


def test_best_ratio_uses_the_neighbours():
    ratios = [0.0, 0.1, 0.2, 0.3]
    assert gains.best_ratio(ratios, [0.1, 0.3, 0.2, 0.0]) == pytest.approx(
        0.1 + 0.1 / 6
    )
    assert gains.best_ratio(ratios, [0.4, 0.3, 0.2, 0.0]) == 0.0
    assert gains.fit_line([2, 10, 20], [0.8, 0.7, 0.6])[1] == pytest.approx(
        0.818, abs=1e-3
    )


# === Open questions ===


def test_settings_of_one_part_leave_the_others_as_they_are(tmp_path):
    flags = ["--preset=smoke", "--parts=regularisers", f"--output_dir={tmp_path}"]
    assert run_binary("imm_questions", *flags).returncode == 0
    done = run_binary("imm_questions", *flags, "--digit_runs=7")
    assert done.returncode == 0 and "regularisers: done before" in done.stdout
    done = run_binary("imm_questions", *flags, "--runs=7")
    assert done.returncode == 1 and "runs was 4 and is 7" in done.stderr
