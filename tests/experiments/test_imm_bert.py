"""The study of IMM in fine-tuning: reports, mistakes, published encoders."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
import tensorflow as tf

from experiments.imm_bert import projecting
from experiments.imm_bert import report as imm_bert_report
from experiments.imm_bert.building import build
from experiments.imm_bert.config import PRESETS as IMM_BERT
from experiments.imm_bert.config import FinetuneConfig
from experiments.imm_bert.training import runs_of as imm_bert_runs
from rlm_tf.models import MaskedLanguageModel, SequenceClassifier
from tests.data.text.test_word_pieces import WORDS
from tests.experiments.binaries import run_binary
from tests.experiments.task_rows import task_row
from tests.layers.transformer.published import write_bert
from tests.models.encoders.toy import encoder, texts


def test_report_of_tasks_averages_restarts_and_pairs_seeds(tmp_path):
    gains = {"none": 0.0, "mlm-tenth": 0.02, "mlm": 0.01, "imm": 0.03}
    rows = [
        task_row(arm, seed, restart, 0.6 + gain + 0.02 * restart + 0.001 * seed)
        for arm, gain in gains.items()
        for seed in (1, 2, 3)
        for restart in (0, 1)
    ]
    rows += [task_row("none", 1, 0, 0.52, "cola")]
    text = imm_bert_report.report(rows, tmp_path)
    assert "| sst2-tenth | accuracy | none | 3 | 61.2 ± 0.1 |  |" in text
    gained = "**+3.0 ± 0.0** | **+1.0 ± 0.0** | **+2.0 ± 0.0**"
    shown = f"| imm | 3 | 64.2 ± 0.1 | {gained} | 10 ± 0 |  |"
    assert shown in text
    assert "| sst2-tenth | accuracy | tf-idf, linear | 3 | 75.0 ± 0.0 |" in text
    assert "| sst2-tenth | imm | 6 | 90.0 ± 0.0 | 5.5 ± 0.0 |" in text
    assert "| cola | accuracy | none | 1 | 52.0 |" in text and "| 52.1 ± 4 |" in text


def test_arms_are_compared_in_restarts_that_both_have(tmp_path):
    rows = [
        task_row("none", 1, 0, 0.60),
        task_row("none", 1, 1, 0.80),
        task_row("none", 2, 0, 0.62),
        task_row("mlm", 1, 0, 0.61),
        task_row("mlm", 2, 0, 0.63),
    ]
    text = imm_bert_report.report(rows, tmp_path)
    assert "| mlm | 2 | 62.0 ± 1.4 | +1.0 ± 0.0 |" in text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"arms": ()}, "--arms must name at least one"),
        ({"tasks": ("sst3",)}, "--tasks must be some of sst2-tenth, .*; found sst3"),
        ({"restarts": 0}, "--restarts must be positive"),
    ],
)
def test_mistakes_in_settings_of_imm_bert(change, message):
    for config in IMM_BERT.values():
        config.check()
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(FinetuneConfig(), **change).check()


def test_published_contexts_of_pairs_know_their_second_texts():
    shared = encoder(num_segments=2)
    tokens = texts()
    segments = (np.arange(tokens.shape[1]) > 4).astype(np.int32) + 0 * tokens
    model = build(
        "imm-k5",
        IMM_BERT["published"],
        SequenceClassifier(shared, 2),
        MaskedLanguageModel(shared),
        text=tokens.ravel,
        rows=lambda: (tokens, segments),
        seed=1,
    )
    drawn = model.contexts.draw(tf.constant([7, 8]), tf.zeros([2, 5], tf.int64))
    assert drawn.segments is not None and np.any(drawn.segments)


def test_fine_tuning_needs_an_encoder(tmp_path):
    config = dataclasses.replace(IMM_BERT["smoke"], encoders_dir=str(tmp_path))
    runs = imm_bert_runs(config, [1])
    assert len({run.name for run in runs}) == len(runs) == 6
    with pytest.raises(FileNotFoundError, match="--preset=generators` trains it"):
        runs[0].prepare()


@pytest.mark.landing
def test_hours_at_the_size_of_table_3(tmp_path, monkeypatch):
    tiny = {**projecting.BERT_BASE, "num_layers": 1, "width": 8, "num_heads": 2}
    monkeypatch.setattr(projecting, "BERT_BASE", tiny)
    monkeypatch.setattr(projecting, "PIECES", 40)
    tasks = ("cola", "mrpc", "rte")
    config = dataclasses.replace(IMM_BERT["paper"], project_steps=1, tasks=tasks)
    names = [run.name for run in imm_bert_runs(config, [1, 2])]
    assert names == [f"project-{arm}" for arm in config.arms]
    found = {"arm": "imm", **projecting.project("imm", config, 1)}
    # As the runs: nine tenths of the examples in steps of 32, 600 steps, but 3 epochs
    # at least and 20 at most; sentences have rows of 64 pieces, pairs of 128.
    steps = {"cola": (241, 3, "64"), "mrpc": (115, 6, "128"), "rte": (71, 9, "128")}
    assert found["epochs"] == {name: few for name, (_, few, _) in steps.items()}
    for name, (number, few, length) in steps.items():
        hours = number * few * found["step_seconds"][length] / 3600
        assert found["hours"][name] == pytest.approx(hours)
    text = imm_bert_report.report([found], tmp_path)
    assert "| imm | 1 x 8 |" in text and "| hours of rte, 9 epochs |" in text


@pytest.mark.landing
def test_a_published_bert_has_rows_and_a_table_of_its_own(tmp_path):
    bert = tmp_path / "tiny-bert"
    bert.mkdir()
    write_bert(bert, WORDS, max_sequence_length=16)
    flags = ("--preset=smoke", f"--encoder={bert}", "--seeds=1", "--steps=4")
    out = ("--arms=none,imm-k5", f"--output_dir={tmp_path / 'out'}")
    printed = run_binary("imm_bert", *flags, *out, check=True).stdout
    assert "tiny-bert-docs-halves-imm-k5-seed1-restart0" in printed
    lines = (tmp_path / "out" / "results" / "rows.jsonl").read_text().splitlines()
    rows = [json.loads(line)["row"] for line in lines]
    assert {row["checkpoint"] for row in rows} == {"tiny-bert"}
    assert set(imm_bert_report.tables(rows)) == {"checkpoints"}
    write_bert(bert, WORDS, head=False, max_sequence_length=16)
    out = ("--arms=mlm", f"--output_dir={tmp_path / 'other'}")
    done = run_binary("imm_bert", *flags, *out)
    assert done.returncode and "has no head of masked words" in done.stderr
