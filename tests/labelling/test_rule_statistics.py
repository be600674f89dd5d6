"""Numbers of a rule, counted by loops."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rlm_tf.labelling import SeedRule, rule_statistics, seed_statistics

_SEEDS = {"sea": ["ship", "sail*"], "wood": ["tree", "old ship"]}
_TEXTS = [
    "the ship sails on, a ship",
    "an old ship",
    "a tree and a ship",
    "nothing of these",
    "Trees? no: TREE tree sailor",
]
_TRUE = [0, 0, 1, 0, 1]


def test_of_the_rule():
    rule = SeedRule(_SEEDS)
    matches = rule.match(_TEXTS)
    assert matches.labels.tolist() == [0, 1, -1, -1, 1]
    found = rule_statistics(rule, _TEXTS, matches, _TRUE, stop_words={"the", "an", "a"})
    assert (found.documents, found.labelled, found.tied) == (5, 3, 1)
    assert found.coverage == 0.6 and found.noise == pytest.approx(1 / 3)
    assert found.transitions.tolist() == [[1, 1], [0, 1]]
    assert found.length == (5, 1)  # of 6, 3 and 5
    assert found.indicative == (4, 1)  # of 4, 2 and 5
    blind = rule_statistics(rule, _TEXTS, matches)
    assert blind.noise is None and blind.transitions is None
    none = rule_statistics(rule, ["x"], rule.match(["x"]), [0])
    assert none.noise is None and math.isnan(none.length.median)


def test_of_seeds():
    rule = SeedRule(_SEEDS)
    matches = rule.match(_TEXTS)
    found = {own.text: own for own in seed_statistics(rule, matches, _TRUE)}
    assert [*found] == ["ship", "sail*", "tree", "old ship"]
    hits = matches.hits.toarray() > 0
    classes = np.array([seed.class_index for seed in rule.seeds])
    for column, own in enumerate(found.values()):
        rows = [row for row in range(5) if hits[row, column]]
        others = [hits[row].sum() > 1 for row in rows]
        against = [len({*classes[hits[row]]}) > 1 for row in rows]
        assert own.coverage == pytest.approx(len(rows) / 5)
        assert own.overlaps == pytest.approx(sum(others) / 5)
        assert own.conflicts == pytest.approx(sum(against) / 5)
        assert own.labels_alone == len(rows) - sum(others)
        right = [_TRUE[row] == classes[column] for row in rows]
        assert own.accuracy == pytest.approx(np.mean(right))
    assert found["sail*"].conflicts == pytest.approx(0.2)
    assert found["old ship"].class_name == "wood"
    assert seed_statistics(rule, rule.match(["x"]))[0].accuracy is None


@pytest.mark.peers
def test_of_seeds_as_snorkel_has_them():
    analysis = pytest.importorskip(
        "snorkel.labeling.analysis", reason="snorkel is not installed"
    )
    rule = SeedRule(_SEEDS)
    matches = rule.match(_TEXTS)
    classes = np.array([seed.class_index for seed in rule.seeds])
    votes = np.where(matches.hits.toarray() > 0, classes, -1)
    expected = analysis.LFAnalysis(votes)
    found = seed_statistics(rule, matches)
    for name, theirs in (
        ("coverage", expected.lf_coverages()),
        ("overlaps", expected.lf_overlaps()),
        ("conflicts", expected.lf_conflicts()),
    ):
        np.testing.assert_allclose([getattr(own, name) for own in found], theirs)


def test_mistakes():
    rule = SeedRule(_SEEDS)
    matches = rule.match(_TEXTS)
    with pytest.raises(ValueError, match="5 matches of 1 texts"):
        rule_statistics(rule, ["a"], matches)
    with pytest.raises(ValueError, match="must be 5 of the classes 0 to 1"):
        rule_statistics(rule, _TEXTS, matches, [0, 0, 1, 2, 0])
    with pytest.raises(ValueError, match="must be 5 of the classes"):
        seed_statistics(rule, matches, [0])
