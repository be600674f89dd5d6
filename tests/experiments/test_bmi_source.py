"""`bmi_source`: what it counts and reports, its simple peer, mistakes."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re

import keras
import numpy as np
import pytest
import tensorflow as tf

from experiments.bmi_source import report as source_report
from experiments.bmi_source.config import PRESETS as SOURCE
from experiments.bmi_source.counting import counted_information, markers_of
from experiments.bmi_source.probing import topics_found
from experiments.bmi_source.training import _shuffled, runs_of
from rlm_tf.data import TopicSource
from rlm_tf.evaluation import restricted_target_log_probs, tune_floor
from rlm_tf.restricted import KneserNey

_SOURCE = TopicSource(6, 20, 7, shown=0.95, stay=0.9)
_VALID = _SOURCE.sample(200, 1001)


def test_markers_that_are_counted_have_the_known_information():
    text = _SOURCE.sample(40_000, seed=3)
    rows = markers_of([text[:80_000], text[80_000:]], 6)
    assert [len(row) for row in rows] == [10_000, 30_000]
    found = counted_information(rows, 7)
    assert found == pytest.approx(_SOURCE.information(), abs=0.01)
    # Of symbols in random order, without the bias there would be 0.0005.
    mixed = np.random.default_rng(0).permutation(np.concatenate(rows))
    assert abs(counted_information([mixed], 7)) < 5e-4


def test_what_is_behind_the_last_end_is_no_sentence():
    assert markers_of([np.array([9, 2, 0, 8, 0, 1, 9])], 6)[0].tolist() == [2, 0]


def test_sentences_are_shuffled_whole():
    text = _SOURCE.sample(50, seed=1)
    found = _shuffled(text, 2)
    before, after = (
        sorted(map(tuple, part.reshape(-1, 8).tolist())) for part in (text, found)
    )
    assert before == after and np.any(text != found)


def _source_row(arm, seed, loss, **more):
    return {
        "name": f"{arm}-{seed}",
        "arm": arm,
        "sentences": 3000,
        "sentence_length": 7,
        "seed": seed,
        "test_nll": loss,
        "floor": 2.5,
        "best_epoch": 3,
        "seconds_to_best": 2.0,
        "seconds": 4.0,
        "epochs": 4,
        "valid_curve": [3.0, 2.9, 2.8, 2.8],
        "marker_ratio": 1.5,
        "elsewhere": 0.01,
        "counted": 0.7,
        "counted_text": 1.23,
        "information": 1.24,
        "sandwich": {"lower": 0.6, "upper": 0.8},
        "pair_accuracy": None if arm == "none" else 0.8,
        "phase_two_from": 3 if arm == "full" else None,
        "raw_curve": [3.1, 2.9, 2.95, 2.8],
        **more,
    }


def test_the_report_compares_runs_of_one_seed(tmp_path):
    rows = [
        _source_row(arm, seed, 2.6 + 0.1 * seed - 0.01 * (arm == "base"))
        for arm, seed in itertools.product(("none", "base"), (1, 2, 3))
    ]
    text = source_report.report(rows, tmp_path)
    # Of the seeds 0.2, 0.3, 0.4; one hundredth less with each.
    assert "| 3,000 | none | 0.3000 ± 0.1000 |  |" in text
    assert "| 3,000 | base | 0.2900 ± 0.1000 | **-0.0100 ± 0.0000** |" in text
    assert "| the source | 1 | 0 | 1.23 | 1.24 | 1.24 |" in text
    # Phase II from the third epoch on.
    (line,) = source_report.phase_table([_source_row("full", 1, 2.6)]).splitlines()[2:]
    assert line == "| 7 words, 3,000 | full | 3 | 0.0500 | -0.1000 |"
    assert (tmp_path / "bmi_source.png").stat().st_size > 5000


def test_topics_are_found_where_they_are_kept(tmp_path):
    """A model that counts nothing shows a marker while it reads it, and forgets it."""
    text = _SOURCE.sample(3000, seed=5)

    class Forgets(keras.Model):
        def hidden_features(self, tokens, states=None, training=False):
            return [tf.one_hot(tokens, _SOURCE.vocabulary_size)]

    class Keeps(keras.Model):
        def hidden_features(self, tokens, states=None, training=False):
            return [tf.cumsum(tf.one_hot(tokens, _SOURCE.vocabulary_size), axis=1)]

    forgets, keeps = (topics_found(m(), text, 6, 7) for m in (Forgets, Keeps))
    assert forgets["greatest"] == 1 and forgets["last"] == forgets["guessed"] < 0.4
    assert keeps["last"] > 0.8
    rows = [
        _source_row("none", seed, 2.6, sentence_length=20, topics_found=forgets)
        for seed in (1, 2)
    ]
    assert "| 3,000 | none | 2 | 100.0 ± 0.0 | " in source_report.report(rows, tmp_path)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"arms": ("x",)}, "--arms must be some of n-gram, none"),
        ({"sentences": ()}, "--sentences must name at least one"),
        ({"shown": 2.0}, "--shown must be at most 1"),
        ({"dropout": 1.0}, "--dropout must be below 1"),
        ({"patience": 0}, "--patience must be positive"),
    ],
)
def test_mistakes_of_bmi_source(config, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(SOURCE["small"], **config).check()


def test_the_n_gram_is_the_best_on_validation_text(tmp_path):
    config = dataclasses.replace(
        SOURCE["small"], arms=("n-gram",), sentences=(300,), valid_sentences=200
    )
    (run,) = runs_of(config, [1])
    counted = run.prepare()
    losses = {}
    for order in range(1, 7):
        model = KneserNey(order).fit(_SOURCE.sample(300, 1), _SOURCE.vocabulary_size)
        floored = model.with_floor(tune_floor(model, _VALID, prefix=0))
        log_p = restricted_target_log_probs(floored, _VALID, prefix=0)
        losses[order] = -np.mean(log_p)
    assert counted.order == min(losses, key=losses.get)
    assert counted.valid_nll == pytest.approx(min(losses.values()))
    row = run.train(counted, tmp_path / "n-gram")
    # Frequencies alone have the entropy of words, in which topics are not.
    assert row["floor"] < row["test_nll"] < math.log(_SOURCE.vocabulary_size)
    # It has no curve, and says nothing.
    text = source_report.report([row, _source_row("none", 1, 2.6)], tmp_path)
    assert re.search(
        r"\| 300 \| n-gram \| 0\.\d{4} \|  \|  \|  \| \d+ \|  \| 1 \|", text
    )
