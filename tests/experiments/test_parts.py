"""The binaries that are made of parts: reinforce, logistic, consistency."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from experiments.imm_logistic import gains
from experiments.imm_logistic import tables as logistic_tables
from experiments.imm_reinforce import published as published_reinforce
from experiments.imm_reinforce import study as reinforce_study
from experiments.imm_reinforce import tables as reinforce_tables
from experiments.imm_reinforce.exact import exact_returns
from experiments.kit.grid_config import ARMS, FIXED, ReinforceConfig
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
    mean, _, _, deviation = published_reinforce.FIGURE_3["none"][50]
    returns = [mean + 1.0, mean + 3.0]
    numbers = {"cells": [{"arm": "none", "epochs": 50, "returns": returns}]}
    found = reinforce_tables.differences(numbers)["none", 50]
    # The sample variance of the two is 2, of their mean 1.
    assert found == pytest.approx(2.0 / np.sqrt(1.0 + deviation**2 / 30))
    text = reinforce_tables.agreement(numbers)
    assert ("by more than three: 0" in text) == (abs(found) <= 3)


@pytest.mark.landing
def test_cells_of_figure_3_are_the_published_ones():
    """At 50 and 75 epochs, where IMM gains most: many standard errors."""
    config = ReinforceConfig(epochs=(50, 75), search_epochs=(50,))
    numbers = reinforce_study.figure_3(config)
    distances = reinforce_tables.differences(numbers)
    assert len(distances) == 8
    assert max(map(abs, distances.values())) < 3
    means = {(c["arm"], c["epochs"]): np.mean(c["returns"]) for c in numbers["cells"]}
    for epochs in config.epochs:
        assert means["max-utility", epochs] > means["none", epochs] + 4


def test_gains_are_of_paired_runs():
    cells = [
        {"arm": arm, "epochs": 10, "returns": [1.0 + gain, 2.0 + gain, 6.0 + gain]}
        for gain, arm in enumerate((*ARMS, FIXED))
    ]
    # Of one arm the gains of the seeds are 1, 1 and 4: their mean 2, their error 1.
    cells[1]["returns"][2] += 3.0
    numbers = {"cells": cells, "config": {"epochs": [10]}}
    _, _, line = reinforce_tables.gains_table(numbers).splitlines()
    # Published: 1.6744 with the max-utility target, 1.2771 without.
    assert line.startswith("| 10 | +2.00 ± 1.00 | +0.40 | +2.00 ± 0.00 | +0.29 |")
    assert line.endswith("| +4.00 ± 0.00 |")


def test_exact_returns_by_loops(rng):
    rewards = rng.random((3, 3))
    uniform, restricted, optimal = np.zeros((3, 3, 3))
    for y in range(3):
        for x in range(3):
            one = [rewards[(y - 1) % 3, x], rewards[(y + 1) % 3, x]]
            one += [rewards[y, (x - 1) % 3], rewards[y, (x + 1) % 3]]
            uniform[y, x], optimal[y, x] = np.mean(one), max(one)
            # To the middle column, which is 1, and then up.
            restricted[y, x] = (one[3], one[0], one[2])[x]
    found = exact_returns(rewards.tolist(), 1)
    expected = [uniform.mean(), restricted.mean(), optimal.mean()]
    np.testing.assert_allclose(found, expected)


def test_exact_returns_of_the_published_grid():
    config = ReinforceConfig()
    numbers = reinforce_study.landscape(config)
    found = exact_returns(numbers["rewards"], config.horizon)
    np.testing.assert_allclose(found, [1.1364, 5.8867, 21.4133], atol=5e-5)


# === Logistic regression ===


@pytest.mark.parametrize(
    ("coefficients", "offset", "expected"),
    [
        # 1 - E[(2 - |x1|)^2] / 8: the tail of the triangle that x2 + x3 has.
        ((1.0, 1.0, 1.0), 0.0, 17 / 24),
        # x2 alone decides, of which x1 says nothing.
        ((0.0, 1.0, 0.0), 0.0, 0.5),
        # |x1| > |x2| half of the time, and then the label is known.
        ((1.0, 1.0, 0.0), 0.0, 0.75),
        ((0.0, 1.0, 0.0), 0.5, 0.75),
    ],
)
def test_accuracy_of_the_restricted_model_alone(coefficients, offset, expected):
    found = gains.restricted_accuracy(
        {"coefficients": coefficients, "offset": offset, "low": -1.0, "high": 1.0}
    )
    assert found == pytest.approx(expected, abs=1e-4)


def _sweep_cells(peaks):
    """Returns cells whose accuracy is best at a ratio that is given for each size."""
    return [
        {
            "learning_rate": 0.1,
            "size": size,
            "ratio": ratio,
            "accuracy": [0.9 - (ratio - peak) ** 2, 0.8 - (ratio - peak) ** 2],
        }
        for size, peak in peaks.items()
        for ratio in (0.9, 0.0, 0.2, 0.4, 0.6)
    ]


def test_the_rule_is_fitted_beside_the_published_one():
    numbers = {"cells": _sweep_cells({2: 0.5, 10: 0.4, 30: 0.15})}
    head, _, published, ours = logistic_tables.rule(numbers).splitlines()
    assert head == "| best ratios | n = 2 | n = 10 | n = 30 | line |"
    assert published == "| the paper | 0.80 | 0.70 | - | -0.0111 n + 0.818 |"
    assert ours == "| rate 0.1 | 0.50 | 0.40 | 0.15 | -0.0125 n + 0.525 |"
    one = logistic_tables.rule({"cells": _sweep_cells({10: 0.4})})
    assert one.endswith("| rate 0.1 | 0.40 | - |")


def test_sweeps_are_sorted_by_ratio():
    numbers = {"cells": _sweep_cells({2: 0.4})}
    head, _, line = logistic_tables.sweep(numbers).splitlines()
    assert head.endswith("| r = 0.0 | r = 0.2 | r = 0.4 | r = 0.6 | r = 0.9 |")
    assert line == "| 0.1 | 2 | 0.690 | 0.810 | 0.850 | 0.810 | 0.600 |"


def test_wide_tasks_have_a_table_of_their_own():
    definition = {"coefficients": [1.0, 1.0, 1.0], "offset": 0.0, "low": -1.0}
    arms = {"none": [0.5, 0.7], "imm": [0.6, 0.9], "imm, fitted P_hat": [0.6, 0.6]}
    cells = [
        {"task": name, "size": 2, "definition": definition | {"high": high}}
        | {"accuracies": arms}
        for name, high in (("near", 1.0), ("far", 3.0))
    ]
    near = logistic_tables.choices({"cells": cells}).splitlines()
    far = logistic_tables.wide_choices({"cells": cells}).splitlines()
    assert len(near) == len(far) == 3
    assert near[2].startswith("| near | 2 | 0.708 | 0.600 [0.520, 0.680] | 0.750 ")
    assert far[2].startswith("| far | 2 | ")
    assert near[2].endswith("| +0.150 ± 0.050 |")


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
