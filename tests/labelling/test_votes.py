"""Labels from votes: majority, ties, files of WRENCH."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rlm_tf.labelling import SeedRule, majority_vote, read_wrench, seed_votes

_VOTES = [[0, 1, 1, -1], [-1, -1, -1, -1], [0, 1, -1, -1], [2, 2, 0, 0]]


def test_most_votes_win_and_ties_abstain_or_take_the_first():
    np.testing.assert_array_equal(majority_vote(_VOTES, 3), [1, -1, -1, -1])
    np.testing.assert_array_equal(majority_vote(_VOTES, 3, ties="first"), [1, -1, 0, 0])
    # A column of labels is itself.
    np.testing.assert_array_equal(majority_vote([2, -1, 0], 3), [2, -1, 0])


def test_majorities_are_those_of_snorkel():
    majority = pytest.importorskip("snorkel.labeling.model").MajorityLabelVoter
    votes = np.random.default_rng(0).integers(-1, 3, [200, 5])
    theirs = majority(cardinality=3).predict(votes, tie_break_policy="abstain")
    # A document without a vote is a tie of all to Snorkel.
    np.testing.assert_array_equal(majority_vote(votes, 3), theirs)


def test_a_seed_has_a_vote_however_often_it_is_there():
    rule = SeedRule({"a": ["one", "two"], "b": ["three"]})
    found = seed_votes(rule, rule.match(["one one three", "two", "x"]))
    np.testing.assert_array_equal(found, [[0, -1, 1], [-1, 0, -1], [-1, -1, -1]])


def _document(text, votes, **others):
    return {"data": {"text": text}, "weak_labels": votes, **others}


def test_files_of_wrench(tmp_path):
    path = tmp_path / "train.json"
    rows = {str(i): _document(f"text {i}", [i % 2, -1], label=i % 2) for i in range(12)}
    del rows["3"]["label"]
    path.write_text(json.dumps(rows))
    found = read_wrench(path)
    assert found.texts == [f"text {i}" for i in range(12)]
    np.testing.assert_array_equal(found.votes[:, 0], np.arange(12) % 2)
    assert found.labels[3] == -1 and found.labels[5] == 1
    np.testing.assert_array_equal(majority_vote(found.votes, 2), np.arange(12) % 2)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "expected documents by their number, found list"),
        ("{", r"train\.json: Expecting"),
        ('{"0": {"weak_labels": [0]}}', "document '0' needs `weak_labels` and `data"),
        ('{"0": {"data": {"text": "a"}, "weak_labels": [0.5]}}', "must be integers"),
        (
            json.dumps({"0": _document("a", [0]), "1": _document("b", [0, 1])}),
            "documents have 1 to 2 weak labels",
        ),
    ],
)
def test_files_that_are_none(tmp_path, content, message):
    path = tmp_path / "train.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=message):
        read_wrench(path)


def test_votes_that_cannot_be():
    with pytest.raises(ValueError, match=r"classes 0 to 1, found int64 .*, -1 to 2"):
        majority_vote(_VOTES, 2)
    with pytest.raises(ValueError, match="found float64"):
        majority_vote([[0.5]], 2)
    with pytest.raises(ValueError, match="`ties` must be one of abstain, first"):
        majority_vote(_VOTES, 3, ties="random")
