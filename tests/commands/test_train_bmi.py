"""`rlm_tf train --bmi`: what is trained, kept and served; mistakes."""

from __future__ import annotations

import dataclasses
import json
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.commands import using
from rlm_tf.commands.model_folder import load_folder
from rlm_tf.commands.settings import (
    EvaluateSettings,
    TrainSettings,
    check_train_settings,
)
from rlm_tf.commands.training import pairs, running
from rlm_tf.data import Corpus, SegmentPairs, SentencePairs, Vocabulary
from rlm_tf.models import BootstrappedMutualInformation

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def given(tmp_path_factory) -> TrainSettings:
    rng = np.random.default_rng(1)
    path = tmp_path_factory.mktemp("text") / "lines.txt"
    words = np.array(["one", "two", "three", "four", "five", "six"])
    lines = [" ".join(rng.choice(words, rng.integers(2, 6))) for _ in range(300)]
    path.write_text("\n".join(lines) + "\n")
    return TrainSettings(
        text=str(path),
        output_dir=str(tmp_path_factory.mktemp("out") / "bmi"),
        epochs=2,
        rule="words",
        width=8,
        num_layers=1,
        dropouts=(0.1, 0.0, 0.0, 0.1),
        dynamic=False,
        bmi=True,
        bmi_phase_two="raml",
        bmi_switch=1,
        bmi_raml_weight=0.2,
        bmi_half_life=1,
        bmi_pooling="last",
    )


@pytest.mark.landing
def test_it_trains_and_serves_pairs(given, capsys):
    running.run(given)
    folder = pathlib.Path(str(given.output_dir))
    printed = capsys.readouterr().out
    assert (
        "bmi: weight 0.1, halved every 1 epoch, last of features, Phase I, raml after "
        "epoch 1 of weight 0.2 (--bmi)" in printed
    )
    assert "BMI: pairs of neighbouring lines, " in printed
    assert "% told apart in training, " in printed
    assert "% told apart of the validation text (50 %: none; MINE " in printed
    rows = [json.loads(x) for x in (folder / "metrics.jsonl").read_text().splitlines()]
    assert "raml" not in rows[0] and rows[1]["raml"] > 0
    assert all(row["mutual_information"] > 0 for row in rows)
    trained = load_folder(str(folder), "test")
    assert isinstance(trained.model, BootstrappedMutualInformation)
    assert trained.model.pooling == "last"
    loaded = tf.saved_model.load(str(folder / "saved_model"))
    found = loaded.signatures["score_pairs"](
        first=tf.constant(["one two"]), second=tf.constant(["three"])
    )
    ids = [
        np.append(trained.vocabulary.encode(text), trained.vocabulary.eos_id)[None]
        for text in ("one two", "three")
    ]
    expected = trained.model.pair_scores(*ids)
    np.testing.assert_allclose(found["scores"], expected, rtol=1e-4, atol=1e-6)
    using.evaluate(EvaluateSettings(model=str(folder), text=given.text))
    assert "mixture" in capsys.readouterr().out


def test_text_without_lines_has_segments(given):
    vocabulary = Vocabulary.build("a b c\n", "words")

    def made(ids, rows):
        corpus = Corpus("text", ids, ids, ids, vocabulary)
        plan = type("Plan", (), {"bmi": True, "seed": 1, "batch_size": rows})()
        return pairs._pairs(plan, corpus)

    lines = np.tile([1, 2, vocabulary.eos_id], 50)
    assert isinstance(made(lines, 8), SentencePairs)
    segments = made(np.ones(300, np.int32), 8)
    assert isinstance(segments, SegmentPairs)
    # As many for each row, and at least twelve.
    assert [made(lines, rows).batch_size for rows in (8, 12, 20)] == [16, 12, 20]
    assert segments.batch_size == 16


def test_what_it_did_is_said(given):
    vocabulary = Vocabulary.build("a b c\n", "words")
    ids = np.ones(300, np.int32)
    corpus = Corpus("text", ids, ids, ids, vocabulary)
    plan = type("Plan", (), {"bmi_switch": 3})()
    said = pairs.outcome(plan, corpus, [{"pair_accuracy": 0.5}, {"pair_accuracy": 0.8}])
    assert said == (
        "BMI: pairs of segments of 40, 80 % told apart in training; the second phase "
        "never began: training ended before epoch 4"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bmi_switch": 2}, "--bmi_switch=2 must be below --epochs=2"),
        ({"bmi_pooling": "x"}, "--bmi_pooling must be one of max, mean, last"),
        ({"bmi_switch": None}, "--bmi_phase_two=raml needs the epoch after which"),
        ({"bmi_phase_two": None, "bmi_raml_weight": None}, "--bmi_switch=1 needs"),
        ({"bmi": False}, "--bmi is needed by --bmi_raml_weight, --bmi_half_life, "),
        ({"bmi_phase_two": "x"}, "--bmi_phase_two must be raml or rl; found 'x'"),
        ({"bmi_weight": -1.0}, "--bmi_weight must be positive"),
        ({"bmi_raml_weight": 0.0}, "--bmi_raml_weight must be positive"),
        (
            {"bmi_phase_two": None, "bmi_switch": None},
            "--bmi_raml_weight needs --bmi_phase_two",
        ),
    ],
)
def test_mistakes(given, options, message):
    with pytest.raises(ValueError, match=message):
        check_train_settings(dataclasses.replace(given, **options))
