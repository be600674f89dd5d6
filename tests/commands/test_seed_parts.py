"""Parts of `rlm_tf seed_classify`: strata, conflicts, what files can hold."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from rlm_tf.commands.seeds import estimating, looking, passes, tables
from rlm_tf.commands.seeds import report as report_of_seeds
from rlm_tf.labelling import SeedRule


def test_strata_without_labels_join_their_neighbours():
    assert estimating._joined(np.array([1, 0, 2, 0])).tolist() == [0, 1, 1, 1]
    assert estimating._joined(np.array([0, 0, 3])).tolist() == [0, 0, 0]
    assert estimating._joined(np.array([1, 1])).tolist() == [0, 1]
    # Sure documents, of which there are many, are right; unsure ones are not.
    rng = np.random.default_rng(0)
    strata = np.repeat(np.arange(4), [20, 20, 20, 340])
    right = rng.random(400) < np.array([0.4, 0.6, 0.8, 1.0])[strata]
    values = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        rows = np.concatenate(
            [rng.choice(np.flatnonzero(strata == s), 2) for s in range(4)]
        )
        truth = np.full(400, -1)
        own = rng.permutation(rows)[:4]
        truth[own] = np.where(right[own], 0, 1)
        found = estimating.accuracy(
            np.zeros(400, int), truth, [estimating.Sample(rows, strata)]
        )
        values.append(found["value"])
    # A simple sample of as many from each would say 0.7.
    assert abs(np.mean(values) - right.mean()) < 0.1


def test_what_files_cannot_hold_is_put_into_them_otherwise():
    assert report_of_seeds.printable("a\0b \ud83d") == "a\ufffdb ?"
    assert report_of_seeds._short("x\ud83d y") == "x? y"


def test_conflicts_and_harmful_seeds():
    rule = SeedRule({"sea": ["ship", "harbour"], "wood": ["tree", "sail"]})
    sails = [f"sail {number}" for number in range(6)]
    texts = ["ship tree", "tree ship sail", *sails, "harbour"]
    matches = rule.match(texts)
    (first, second) = looking.conflicts(rule, matches, [*map(str, range(9))], texts)
    assert first["seeds"] == ["ship", "tree"] and first["documents"] == 2
    assert first["classes"] == ["sea", "wood"] and first["text"] == "ship tree"
    assert second["seeds"] == ["ship", "sail"] and second["id"] == "1"
    judged = np.full([9, 2], np.nan)
    judged[2:8] = [0.9, 0.1]
    judged[8] = [0.7, 0.3]
    truth = np.array([0, -1, 0, 0, 1, -1, -1, -1, -1])

    def seeds(texts, judged):
        rows = looking.seeds_of(rule, matches, texts, judged, truth)
        return {row["text"]: row for row in rows}

    found = seeds(texts, judged)
    assert found["sail"]["is_harmful"] and found["sail"]["doubted"] == 1
    assert found["sail"]["accuracy"] == pytest.approx(1 / 3)
    assert found["sail"]["true_labels"] == 3 and found["harbour"]["accuracy"] is None
    assert not found["harbour"]["is_harmful"] and found["tree"]["doubted"] is None
    # One text many times, or probes that know nothing of the class, doubt no seed.
    alike = seeds([*texts[:2], *["sail"] * 6, "harbour"], judged)["sail"]
    assert alike["doubted"] == 1 and not alike["is_harmful"]
    judged[2:] = np.nan
    found = seeds(texts, judged)
    assert all(
        row["doubted"] is None and not row["is_harmful"] for row in found.values()
    )
    probs = {"plain": judged}
    assert "plain" not in estimating.without_labels(rule, matches, probs)


def test_labels_are_pooled_by_stratum():
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.5, 1.0, 4000)
    probs = np.stack([confidence, 1 - confidence], axis=1)
    right = rng.random(4000) < confidence
    labels = np.zeros(4000, int)
    # Texts without a word have no prediction, and nobody is asked.
    probs[:500] = 0.5
    labels[:500] = -1
    truth_of_all = np.where(right, 0, 1)
    found = {"asked": [], "more": [], "earlier": [], "others": []}
    for seed in range(60):
        sample = estimating.sample_of(probs, labels, 50, seed)
        assert len(np.unique(sample.rows)) == 50 and sample.rows.min() >= 500
        other = estimating.sample_of(probs, labels, 90, seed + 100)
        simple = np.random.default_rng(seed).choice(np.arange(500, 4000), 50, False)
        more = np.union1d(sample.rows, simple)
        for name, rows, samples in (
            ("asked", sample.rows, [sample]),
            ("more", more, [sample]),
            ("earlier", sample.rows, [other, sample]),
            ("others", np.setdiff1d(simple, sample.rows), [sample]),
        ):
            truth = np.full(4000, -1)
            truth[rows] = truth_of_all[rows]
            own = estimating.accuracy(labels, truth, samples)
            assert own["labels"] == len(rows) and own["low"] < own["value"]
            found[name].append(own["value"])
    true = right[500:].mean()
    for values in found.values():
        assert abs(np.mean(values) - true) < 4 * np.std(values) / np.sqrt(60)
    # The least sure ones alone would be worse: so many are asked of each stratum.
    sample = estimating.sample_of(probs, labels, 50, 0)
    counts = np.bincount(sample.strata[sample.rows])
    assert counts.tolist() == [10] * 5
    # Labels of texts without a prediction say nothing of it.
    truth = np.full(4000, -1)
    truth[[0, 1, 600]] = 0
    assert estimating.accuracy(labels, truth, [sample])["labels"] == 1


def test_few_labels_are_read_often_and_many_documents_seldom():
    # A handful of labels of many documents: many passes over them, few over all.
    assert passes.passes_over(20, 12_600, 64, True) == (100, 8)
    assert passes.passes_over(9000, 12_600, 64, True) == (8, 8)
    # A million documents are read once or twice.
    assert passes.passes_over(1000, 1_000_000, 64, True) == (25, 1)
    assert passes.passes_over(900_000, 1_000_000, 64, True) == (1, 1)
    assert passes.passes_over(900, 12_600, 32, False) == (11, 3)
    # Where all documents are few, they are read as often as labelled ones.
    assert passes.passes_over(200, 600, 64, True) == (100, 40)
    assert passes.passes_over(200, 60, 64, True) == (100, 100)
    assert passes.passes_over(200, 2500, 64, True) == (100, 10)


def test_where_training_on_its_own_predictions_leads_away_is_seen():
    names = ["air", "sea", "wood"]
    labels = np.repeat([0, 1, 2, -1], 10)
    first = np.array([*labels[:30], *np.repeat([0, 1], 5)])
    assert passes.drifted(np.stack([first, first]), labels, names) is None
    gone = np.where(first == 2, 1, first)
    found = passes.drifted(np.stack([first, first, gone]), labels, names)
    assert found == "wood was predicted 10 times, then 0"
    # Each class is still there, of other documents.
    moved = first.copy()
    moved[:15] = np.roll(first[:30], 10)[:15]
    found = passes.drifted(np.stack([first, moved]), labels, names)
    assert found == (
        "100 % of the labelled documents were predicted as labelled, then 50 %"
    )


def test_tables_hold_ends_of_lines_of_every_kind(tmp_path):
    rows = [("id", "text"), ("a", "one\rtwo"), ("b\r", 'a "q",\r\n'), ("c", "x\ny")]
    tables.write_csv(tmp_path / "a.csv", rows)
    with open(tmp_path / "a.csv", newline="", encoding="utf-8") as file:
        assert [*csv.reader(file)] == [[*row] for row in rows]
    assert (tmp_path / "a.csv").read_bytes().startswith(b"id,text\n")
