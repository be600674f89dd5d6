"""What the studies of open questions compute, against loops."""

from __future__ import annotations

import dataclasses
import itertools
import types

import keras
import numpy as np
import pytest
import tensorflow as tf

from experiments.imm_questions import (
    coefficient_rules,
    digits,
    imperfect,
    restrictions,
    tables,
    text,
)
from experiments.imm_questions.config import QuestionsConfig
from experiments.imm_questions.logistic_task import Task, summary
from rlm_tf.data import load_corpus
from rlm_tf.models import LogisticWeights
from rlm_tf.restricted import KneserNey

_CONFIG = QuestionsConfig(runs=3, steps=50, test_points=500)


def test_summary_is_of_paired_differences():
    found = summary([1.0, 2.0, 6.0], [0.0, 2.0, 1.0])
    assert found["mean"] == pytest.approx(3.0)
    assert found["error"] == pytest.approx(np.sqrt(7.0 / 3))
    assert found["gain"] == pytest.approx(2.0)
    assert found["gain_error"] == pytest.approx(np.sqrt(7.0 / 3))


def test_advantage_by_loops(rng):
    """Mean log P_hat - log Q_hat on held-out pairs; Q_hat over the run's examples."""
    task = Task(_CONFIG)
    x, _ = task.data(4)
    held_out = task.source.sample(5, rng, 3)
    kernels = rng.normal(size=(3, 3)).astype(np.float32)
    biases = rng.normal(size=3).astype(np.float32)
    weights = LogisticWeights(tf.constant(kernels), tf.constant(biases))
    found = coefficient_rules._advantages(task, weights, x, held_out)
    points, labels = held_out
    for run in range(3):
        total = 0.0
        for point, label in zip(points[run], labels[run], strict=True):
            kernel = np.exp(-np.abs(x[run, :, 0] - point[0]))
            mixed = np.column_stack([np.full(4, point[0]), x[run, :, 1:]])
            probs = 1 / (1 + np.exp(-(mixed @ kernels[run] + biases[run])))
            induced = np.sum(kernel * probs) / kernel.sum()
            own = float(task.targets(point[np.newaxis])[0])
            total += np.log(own if label else 1 - own)
            total -= np.log(induced if label else 1 - induced)
        assert found[run] == pytest.approx(total / 5, rel=1e-4)


@pytest.mark.landing
def test_advantage_of_an_n_gram_model_by_loops(rng):
    """The model knows the last word only: it is its own induced model."""
    corpus = load_corpus("python-docs")
    few = dataclasses.replace(
        corpus, train=corpus.train[:900], valid=corpus.valid[:300]
    )
    size = len(corpus.vocabulary)
    rows = rng.normal(size=(size, size)).astype(np.float32)
    table = keras.layers.Embedding(size, size, weights=[rows])
    wrapper = types.SimpleNamespace(
        model=keras.Sequential([keras.Input((None,), dtype="int32"), table]),
        active=keras.Variable(0.0),
    )
    bigram = KneserNey(2).fit(few.train, size)
    rule = text.AdvantageCoefficient(bigram, few, lambda advantage: 2 * advantage)
    rule.set_model(wrapper)
    rule.on_epoch_begin(0)
    log_q = tf.nn.log_softmax(rows.astype(np.float64)).numpy()
    advantages, left_out = [], 0
    for before, word in itertools.pairwise(few.valid):
        log_p = float(bigram.log_probs([before])[0, word])
        if before in few.train and np.isfinite(log_p):
            advantages.append(log_p - log_q[before, word])
        else:
            left_out += 1
    assert left_out > 10 and len(advantages) > 100
    assert rule.values == [pytest.approx(2 * np.mean(advantages), rel=1e-5)]
    assert float(wrapper.active) == pytest.approx(rule.values[0])


def test_evidence_grows_with_tokens_and_advantage():
    assert text._by_evidence(100, -0.5) == 0.0
    ratio = 1 - np.exp(-100 * 0.004)
    assert text._by_evidence(100, 0.004) == pytest.approx(ratio / (1 - ratio))
    assert text._by_evidence(100, 1.0) == pytest.approx(9.0)


def test_clusters_average_over_their_members(rng):
    task = Task(_CONFIG)
    x, _ = task.data(6)
    centres = rng.uniform(-1, 1, (2, 3))
    found = restrictions._clusters(task, x, centres)
    nearest = np.linalg.norm(x[:, :, None] - centres, axis=-1).argmin(axis=-1)
    for run in range(3):
        for n in range(6):
            members = nearest[run] == nearest[run, n]
            np.testing.assert_allclose(
                found.kernel[:, run, n], members / members.sum(), rtol=1e-6
            )
    assert not np.any(found.substituted)
    # What is known of a cluster is how often its points have label 1.
    sample, labels = task.source.sample(200_000, rng)
    of_sample = np.linalg.norm(sample[:, None] - centres, axis=-1).argmin(axis=-1)
    share = labels[of_sample == nearest[0, 0]].mean()
    assert float(found.target_probs[0, 0]) == pytest.approx(share, abs=0.01)


def test_degraded_models():
    probs = np.array([0.2, 0.5, 0.9])
    squared = probs**2 / (probs**2 + (1 - probs) ** 2)
    np.testing.assert_allclose(imperfect._tempered(0.5)(probs), squared)
    np.testing.assert_allclose(imperfect._tempered(1.0)(probs), probs)
    np.testing.assert_allclose(imperfect._flipped(0.5)(probs), 0.5)
    np.testing.assert_allclose(imperfect._flipped(0.1)(probs), 0.1 + 0.8 * probs)


def test_patches_are_the_inner_pixels():
    images = np.zeros((1, 8, 8, 1), np.float32)
    images[0, 2:6, 2:6] = 1
    assert digits._patches(images).shape == (1, 16)
    assert digits._patches(images).all() and not digits._patches(1 - images).any()
    found, labels = digits._digits(1)
    assert found.shape == (1797, 8, 8, 1) and found.max() == 1.0
    assert np.bincount(labels).min() > 150


# === Tables ===


def _cells(text):
    """Returns the lines of a table without its titles, each a list of its cells."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def _gain(kind, amount, arm, gain):
    cell = {"mean": 7.0 + gain, "gain": gain, "gain_error": 0.125}
    return {"kind": kind, "amount": amount, "arm": arm, **cell}


def test_tables_of_wrong_models_have_a_line_an_amount():
    numbers = {
        "cells": [
            _gain("pairs", 5.0, "imm", 0.5),
            _gain("pairs", 5.0, "noising", -0.25),
            _gain("label noise", 0.1, "noising", 0.0),
            _gain("label noise", 0.1, "imm", 1.0),
        ],
        "size": 10,
        "plain": {"mean": 0.8654},
        "grid": [_gain("none", 0.0, "none", 0.0), _gain("uniform", 0.0, "imm", 2.0)],
        "config": {"grid_epochs": 3},
    }
    found = tables.tables({"imperfect": numbers})
    assert list(found) == ["imperfect", "imperfect_grid"]
    assert found["imperfect"].splitlines()[0] == "| P_hat | amount | imm | noising |"
    assert _cells(found["imperfect"]) == [
        ["pairs", "5", "+0.500 ± 0.125", "-0.250 ± 0.125"],
        ["label noise", "0.1", "+1.000 ± 0.125", "+0.000 ± 0.125"],
    ]
    assert found["imperfect"].endswith("at n = 10 over no IMM, 0.865.")
    assert _cells(found["imperfect_grid"]) == [["uniform", "0.0", "+2.00 ± 0.12"]]
    assert found["imperfect_grid"].endswith("after 3 epochs over no IMM, 7.00.")


def test_the_patch_alone_stands_beside_the_arms_at_every_size():
    """It does not vary: the difference to no IMM varies as that does."""
    without = [[0.5, 0.75], [0.875, 0.875]]
    numbers = {
        "cells": [
            {"arm": "none", "size": size, **summary(values, values)}
            for size, values in zip((30, 60), without, strict=True)
        ],
        "patch_accuracy": 0.75,
    }
    (found,) = tables.tables({"digits": numbers}).values()
    paired = [summary([0.75, 0.75], values) for values in without]
    assert _cells(found)[-1] == [
        "the patch alone",
        *[f"0.750 ({c['gain']:+.3f} ± {c['gain_error']:.3f})" for c in paired],
    ]
    assert _cells(found)[0][1] == "0.625 (+0.000 ± 0.000)"


def test_gains_in_perplexity_are_shares_of_that_without_imm():
    numbers = {
        "cells": [
            {"arm": "imm", "dropout": 0.4, "decay": 1e-5, "valid": 50.0, "test": 45.0},
            {"arm": "none", "dropout": 0.4, "decay": 1e-5, "valid": 60.0, "test": 50.0},
        ]
    }
    (found,) = tables.tables({"text_regularisers": numbers}).values()
    assert _cells(found) == [
        ["0.4", "1e-05", "60.00 / 50.00", "50.00 / 45.00", "-10.0 %"]
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"runs": 0}, "--runs must be positive, found 0"),
        ({"sizes": ()}, "--sizes must not be empty"),
        ({"features": (1,)}, "--features must be 2 at least"),
        ({"text_arms": ("none", "4-gram")}, "--text_arms must join some of bigram"),
    ],
)
def test_impossible_settings(changes, message):
    with pytest.raises(ValueError, match=message):
        QuestionsConfig(**changes).check()
