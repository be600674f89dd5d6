"""The study of seed words and a transformer: what probes read, and projections."""

from __future__ import annotations

import dataclasses
import json

import pytest

from experiments.kit.seed_documents import planted
from experiments.kit.seed_list import HERE, PUBLISHED, SETS
from experiments.seed_transformer import projecting
from experiments.seed_transformer.config import PRESETS
from experiments.seed_transformer.report import tables
from experiments.seed_transformer.running import runs_of
from tests.experiments.binaries import run_binary


def test_hours_of_the_thesis_size(monkeypatch, tmp_path):
    monkeypatch.setattr(
        projecting, "BERT_BASE", {"num_layers": 1, "width": 4, "num_heads": 1}
    )
    monkeypatch.setattr(projecting, "PIECES", 20)
    config = dataclasses.replace(
        PRESETS["paper"], sets=("rotten-tomatoes",), length=4, project_steps=1
    )
    (run,) = runs_of(config, [1])
    row = run.train(run.prepare(), tmp_path / "projected-seed1")
    learnt, read = row["learnt_seconds"], row["read_seconds"]
    # 10,662 documents, 990 of which have labels; 85 % are in the pool.
    pool, known = 0.85 * 10_662, 0.85 * 990
    # A training on labels, then five on a fifth more of the pool each.
    every = known + sum(known + k / 5 * (pool - known) for k in range(1, 6))
    seconds = 3600 * row["hours"]["rotten-tomatoes"]["vanilla"]
    assert seconds == pytest.approx(4 * every * learnt + 6 * pool * read)
    half = known / 2
    every = known + half + sum(half + k / 5 * (pool - half) for k in range(1, 6))
    seconds = 3600 * row["hours"]["rotten-tomatoes"]["standard"]
    assert seconds == pytest.approx(4 * every * learnt + 7 * pool * read)
    shown = tables([json.loads(json.dumps(row))])
    assert set(shown) == {"projected"} and "| rotten-tomatoes |" in shown["projected"]


def test_sets_of_the_thesis():
    assert set(HERE) < set(SETS) and set(PUBLISHED) < set(SETS)
    assert {SETS[name].title for name in PUBLISHED} == {
        each.title for each in SETS.values()
    }
    planted_run = dataclasses.replace(PRESETS["smoke"], project_steps=1)
    with pytest.raises(ValueError, match="are of published sets, not of planted"):
        planted_run.check()
    with pytest.raises(ValueError, match="--project_steps must not be negative"):
        dataclasses.replace(PRESETS["small"], project_steps=-1).check()


@pytest.mark.landing
@pytest.mark.slow
def test_probes_read_replaced_and_paraphrased_documents(tmp_path):
    documents = planted()
    lines = tmp_path / "lines.txt"
    lines.write_text("\n".join(text.upper() for text in documents.texts) + "\n")
    flags = ("--preset=smoke", f"--output_dir={tmp_path / 'out'}")
    arms = "--arms=vanilla,mlm-replace,paraphrase"
    printed = run_binary("seed_transformer", *flags, arms, f"--paraphrases={lines}")
    for arm in ("vanilla", "mlm-replace", "paraphrase"):
        assert f"| planted | {arm} | 1 |" in printed.stdout, printed.stderr
    missing = run_binary("seed_transformer", *flags, arms)
    assert "needs --paraphrases, a text file or a folder" in missing.stderr
    lines.write_text("one\n")
    few = run_binary(
        "seed_transformer",
        "--preset=smoke",
        "--arms=paraphrase",
        f"--paraphrases={lines}",
        f"--output_dir={tmp_path / 'few'}",
    )
    assert "a line for each of the 400 documents, found 1" in few.stderr
