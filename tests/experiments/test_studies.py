"""What the studies of logistic regression and of the grid compute, against loops."""

from __future__ import annotations

import json

import numpy as np
import pytest
import tensorflow as tf

from experiments.imm_consistency import study as consistency
from experiments.imm_consistency.config import ConsistencyConfig
from experiments.imm_logistic.config import LogisticConfig
from experiments.imm_logistic.study import LogisticStudy
from experiments.imm_logistic.tables import claims
from experiments.imm_questions import digits
from experiments.imm_reinforce.study import figure_3
from experiments.kit.grid_config import FIXED, ReinforceConfig
from experiments.kit.grid_study import Arm, GridStudy
from experiments.kit.mixtures import mixed_accuracies
from rlm_tf.command_line.json_files import write_json
from rlm_tf.models import LogisticWeights

# === Logistic regression ===


def test_imm_risks_by_loops(rng):
    study = LogisticStudy(LogisticConfig(test_points=10, inverse_bandwidth=0.7))
    x, _ = study.data(5, 2, 1)
    kernels = rng.normal(size=(2, 3)).astype(np.float32)
    biases = rng.normal(size=2).astype(np.float32)
    weights = LogisticWeights(tf.constant(kernels), tf.constant(biases))
    found = study.imm_risks(weights, x)
    for run in range(2):
        total = 0.0
        for point in x[run]:
            near = np.exp(-0.7 * np.abs(x[run, :, 0] - point[0]))
            mixed = np.column_stack([np.full(5, point[0]), x[run, :, 1:]])
            probs = 1 / (1 + np.exp(-(mixed @ kernels[run] + biases[run])))
            induced = np.sum(near * probs) / near.sum()
            p = float(study.positive_probs(study.restricted, point[np.newaxis])[0])
            total -= p * np.log(induced) + (1 - p) * np.log(1 - induced)
        assert found[run] == pytest.approx(total / 5, rel=1e-5)


def test_mixtures_by_loops():
    """The model is sure and wrong of the held-out labels: P_hat is all that counts."""
    labels = np.array([[1, 0]])
    wrong = np.log([[[0.99, 0.01], [0.01, 0.99]]])
    targets = np.array([[0.8, 0.3]])
    test_targets = np.array([0.6, 0.4, 0.7])
    test_logits = np.array([[-1.0, 1.0, -1.0]])
    # P_hat says 1, 0, 1; the model says 0, 1, 0.
    accuracies, mus = mixed_accuracies(
        wrong, targets, labels, test_logits, test_targets, np.array([1, 0, 0])
    )
    assert mus[0] == pytest.approx(1.0, abs=0.01)
    assert accuracies[0] == pytest.approx(2 / 3)
    accuracies, mus = mixed_accuracies(
        wrong[:, :, ::-1], targets, labels, test_logits, test_targets, np.array([0] * 3)
    )
    assert mus[0] == pytest.approx(0.0, abs=0.01)
    assert accuracies[0] == pytest.approx(2 / 3)


def test_claims_are_counted(rng):
    cells = []
    for size, gain, width in ((2, 0.1, 0.02), (3, 0.04, 0.3), (4, 0.06, 0.02)):
        plain = 0.5 + size / 100 + 0.1 * rng.random(50)
        helped = plain.mean() + gain + width * (rng.random(50) - 0.5)
        accuracies = {"none": plain, "imm": helped, "interpolation": plain - 0.01}
        accuracies["noising 0.1"] = helped + 0.01
        cells.append({"size": size, "accuracies": accuracies})
    config = {"coefficients": [1.0, 1.0, 1.0], "offset": 0.0, "low": -1.0, "high": 1.0}
    text = claims({"cells": cells, "config": config})
    assert "IMM is better on average | always | at 3 of 3 sizes" in text
    assert "smaller with IMM | typically | at 2 of 3 sizes" in text
    assert "| at n = 2 (+0." in text and "half of that at n = 2, 4;" in text
    assert "noising with the best ratio in hindsight | - | at 0 of 3 sizes" in text
    assert "than interpolation | - | at 3 of 3 sizes" in text
    # Accuracies of IMM are about 0.67, 0.62 and 0.65.
    assert "IMM is better than P_hat alone, 0.708 | - | at 0 of 3 sizes" in text


# === Rows ===


def test_numbers_take_one_line_and_strings_stay(tmp_path):
    content = {
        "runs": [[1, -2.5, 1e-07], [3.0]],
        "text": "[ 1, 2 ]\n[\n 3\n]",
        "mixed": [1, "a"],
        "none": [],
    }
    path = tmp_path / "row.json"
    write_json(path, content)
    text = path.read_text("utf-8")
    assert json.loads(text) == content
    assert "[1,-2.5,1e-07]" in text


# === The other studies ===


def test_the_bias_of_many_samples_is_the_predicted_one():
    found = consistency.bias(ConsistencyConfig(samples=(200,), draws=20_000))
    (cell,) = found["cells"]
    assert cell["bias"] == pytest.approx(cell["predicted"], rel=0.05)


@pytest.mark.landing
def test_the_arm_with_a_fixed_coefficient():
    config = ReinforceConfig(
        epochs=(30,), search_epochs=(30,), runs=2, fixed_coefficient=0.25
    )
    cells = {cell["arm"]: cell for cell in figure_3(config)["cells"]}
    # A ratio of 0.2 is a coefficient of 0.25: below 200 epochs the arms are one.
    assert cells[FIXED]["returns"] == cells["max-utility"]["returns"]
    assert cells[FIXED]["returns"] != cells["none"]["returns"]


@pytest.mark.landing
def test_noising_and_interpolation_on_the_grid():
    config = ReinforceConfig(epochs=(20,), search_epochs=(20,), runs=2, rollouts=3)
    study, noising = GridStudy(config), GridStudy(config, noising=True)
    target = study.target(0.0)
    of_states = target[np.arange(121) % 11]
    (plain,) = study.returns([Arm(target, 0.0)], 20)
    (same,) = noising.returns([Arm(of_states, 0.0)], 20)
    np.testing.assert_array_equal(plain, same)
    # All weight on the target: it acts alone, whatever was learnt.
    alone, as_well = study.returns([Arm(target, 0.0, 1.0), Arm(target, 4.0, 1.0)], 20)
    np.testing.assert_array_equal(alone, as_well)
    # Noising with a large weight makes a policy that acts as the target.
    (noised,) = noising.returns([Arm(of_states, 50.0)], 20)
    (matched,) = study.returns([Arm(target, 50.0)], 20)
    assert not np.array_equal(noised, matched)


def test_mixtures_of_digits_are_tuned_on_their_validation_images(rng):
    count = digits._POOL + digits._VALIDATION + 50
    labels = rng.integers(10, size=count)
    validation = slice(digits._POOL, digits._POOL + digits._VALIDATION)
    uniform = np.full((count, 10), -np.log(10.0))
    right = np.log(np.full((count, 10), 0.01) + 0.9 * np.eye(10)[labels])
    np.testing.assert_allclose(
        digits._mixture(uniform, right, labels, validation), right, atol=0.01
    )
    np.testing.assert_allclose(
        digits._mixture(right, uniform, labels, validation), right, atol=0.01
    )
