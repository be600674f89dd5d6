"""Runs whose loss is finite to the end, but whose perplexity is not, get no row."""

from __future__ import annotations

import contextlib
import math
import types

import numpy as np
import pytest

from experiments.imm_lm import row as imm_row
from experiments.imm_lm.config import RunConfig as ImmConfig
from experiments.kit import run_files
from experiments.kit.recurrent_config import RunConfig as MogrifierConfig
from experiments.kit.vae_config import VaeConfig
from experiments.mi_vae import training as vae
from experiments.mogrifier_lm import training as mogrifier
from experiments.reverse_copy import training as copying
from experiments.reverse_copy.config import PRESETS as COPYING
from rlm_tf.command_line import json_files
from rlm_tf.data import Corpus, Vocabulary
from rlm_tf.data.batches.contiguous_batches import contiguous_batches
from rlm_tf.evaluation import LatentUsage
from rlm_tf.evaluation.perplexity import CorpusPerplexity
from rlm_tf.training import TrainingDivergedError

INFINITE = CorpusPerplexity(800.0, math.inf, 1154.0, 10)


@pytest.fixture
def corpus():
    tokens = np.tile([0, 1], 20).astype(np.int32)
    return Corpus("two", tokens, tokens, tokens, Vocabulary(["<eos>", "a"], "words"))


@pytest.fixture(autouse=True)
def untrained(monkeypatch):
    """Training takes no time, and saving no model."""
    monkeypatch.setattr(run_files, "fit_resumably", lambda *_, **__: None)
    return types.SimpleNamespace(save=lambda path: None, fit=lambda *_, **__: None)


def test_of_imm_lm(corpus, untrained, monkeypatch, tmp_path):
    (tmp_path / "metrics.jsonl").write_text("")
    for name, result in {
        "target_log_probs": np.full(10, -800.0),
        "restricted_target_log_probs": np.full(10, -1.0),
        "induced_perplexity": {},
    }.items():
        monkeypatch.setattr(imm_row.evaluation, name, lambda *_, r=result, **__: r)
    config = ImmConfig(batch_size=2, window=5)
    prepared = imm_row.Prepared(config, corpus, corpus.train, {}, untrained)
    with pytest.raises(TrainingDivergedError, match=r"diverged: perplexity\.valid ="):
        imm_row.row_of(prepared, tmp_path)


def test_of_mogrifier_lm(corpus, untrained, monkeypatch, tmp_path):
    averages = types.SimpleNamespace(best=lambda model: contextlib.nullcontext())
    monkeypatch.setattr(mogrifier, "averaging_of", lambda *_: averages)
    monkeypatch.setattr(mogrifier.evaluation, "evaluate", lambda *_, **__: INFINITE)
    config = MogrifierConfig(batch_size=2, window=5)
    batches = contiguous_batches(corpus.train, 2, 5, prefix=0)
    prepared = mogrifier.Prepared(config, corpus, corpus.train, batches, 3, untrained)
    with pytest.raises(TrainingDivergedError, match=r"diverged: perplexity\.valid ="):
        mogrifier.train(prepared, tmp_path)


def test_of_mi_vae(untrained, monkeypatch, tmp_path):
    usage = LatentUsage(math.inf, 0.1, 0.2, 0.3, 1, 2.0, 4, 4)
    monkeypatch.setattr(vae, "_usage", lambda *_: usage)
    texts = {"train": lambda: []}
    prepared = vae.Prepared(VaeConfig(), {}, untrained, None, texts, None)
    with pytest.raises(TrainingDivergedError, match=r"evaluation\.train\.nll = inf"):
        vae.train(prepared, tmp_path)


def test_of_reverse_copy(untrained, monkeypatch, tmp_path, capsys):
    """In its grid of learning rates, that one diverges is a result."""
    monkeypatch.setattr(copying, "count_parameters", lambda model: 1)
    monkeypatch.setattr(
        copying.WeightAveraging, "best", lambda *_: contextlib.nullcontext()
    )
    untrained.cell = types.SimpleNamespace(output_size=1)
    untrained.embedding_width = None
    untrained.evaluate = lambda *_, **__: {"nll": math.inf}
    run = copying.CopyRun(COPYING["smoke"], "lstm", 3, 0.1, 1)
    row = copying.train(run, untrained, tmp_path)
    assert "nats_per_token.valid = inf" in row["diverged"]
    assert json_files.first_not_finite(row) is None
    assert "Training diverged" in capsys.readouterr().out
