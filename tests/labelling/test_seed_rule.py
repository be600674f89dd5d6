"""The rule of seed words: the oracle, naive matching, ties, dead seeds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_tf.labelling import SeedRule
from rlm_tf.labelling.seed_tokens import published_tokens, words_of
from tests.references.weak_supervision_reference import ORACLE

_TOY = ORACLE["seed_rule_toy"]


@pytest.mark.parametrize("ties", ["first", "abstain"])
def test_the_oracle(ties):
    rule = SeedRule(_TOY["seeds"], ties=ties)
    found = rule.match(_TOY["texts"])
    assert list(rule.class_names) == _TOY["class_names"]
    np.testing.assert_array_equal(found.counts, _TOY["counts"])
    np.testing.assert_array_equal(found.labels, _TOY[f"labels_{ties}"])
    most = np.max(_TOY["counts"], axis=1, keepdims=True)
    tied = ((np.array(_TOY["counts"]) == most) & (most > 0)).sum(axis=1) > 1
    np.testing.assert_array_equal(found.tied, tied)
    assert found.labels.dtype == found.counts.dtype == np.int32


def _naive(rule, text):
    """Counts of classes, and of seeds, by trying every seed at every place."""
    tokens = words_of(text)
    counts, hits = [0] * len(rule.class_names), [0] * len(rule.seeds)
    place = 0
    while place < len(tokens):
        fitting = []
        for number, seed in enumerate(rule.seeds):
            size = len(seed.tokens)
            own = tokens[place : place + size]
            if not size or len(own) < size:
                continue
            *begin, last = own
            ends = last.startswith if seed.is_prefix else last.__eq__
            if tuple(begin) == seed.tokens[:-1] and ends(seed.tokens[-1]):
                fitting.append((size, number))
        longest = max((size for size, _ in fitting), default=1)
        best = [number for size, number in fitting if size == longest]
        for number in best:
            hits[number] += 1
        for own_class in {rule.seeds[number].class_index for number in best}:
            counts[own_class] += 1
        place += longest if best else 1
    return counts, hits


_WORD = st.sampled_from(
    ["a", "b", "ab", "abc", "A", "b'c", "Ab-b", "ΑΣ", "İa", ".", "\n"]
)
_SEED = st.lists(_WORD, min_size=1, max_size=3).map(" ".join)
_SEED = st.builds(lambda text, star: text + star, _SEED, st.sampled_from(["", "", "*"]))
_SEED = _SEED.filter(str.strip)


@settings(max_examples=150, deadline=None)
@given(
    seeds=st.dictionaries(
        st.sampled_from(["x", "y", "z"]),
        st.lists(_SEED, min_size=1, max_size=4),
        min_size=2,
    ),
    texts=st.lists(st.lists(_WORD, max_size=8).map(" ".join), max_size=4),
)
def test_matching_is_that_of_trying_everything(seeds, texts):
    rule = SeedRule(seeds)
    found = rule.match(texts)
    expected = [_naive(rule, text) for text in texts]
    assert found.counts.tolist() == [counts for counts, _ in expected]
    assert found.hits.toarray().tolist() == [hits for _, hits in expected]


def test_published_tokens():
    assert published_tokens("Don't, stop--NOW !\tsame-sex\n...") == [
        *("dont", "stopnow", "samesex")
    ]
    seeds = {"a": ["same-sex", "dont", "Now"], "b": ["two words", "game*", "stopnow"]}
    rule = SeedRule(seeds, tokenisation="published")
    dead = {seed.text for seed in rule.dead_seeds}
    assert dead == {"same-sex", "Now", "two words", "game*"}
    found = rule.match(["Don't stop--NOW, don't! same-sex games now"])
    assert found.counts.tolist() == [[2, 1]] and found.labels.tolist() == [0]
    # Under `words` phrases and beginnings do.
    rule = SeedRule(seeds)
    assert not rule.dead_seeds
    assert rule.match(
        ["same-sex", "Same sex!", "two  words", "Games"]
    ).labels.tolist() == ([0, 0, 1, 1])


def test_seeds_that_match_the_same_are_one():
    seeds = {"sea": ["ship", "Ship", " ship ", "ship*", "SHIP*"], "wood": ["ship"]}
    rule = SeedRule(seeds)
    assert [seed.text for seed in rule.seeds] == ["ship", "ship*", "ship"]
    matches = rule.match(["a ship", "shipping"])
    assert matches.hits.toarray().tolist() == [[1, 1, 1], [0, 1, 0]]
    assert matches.counts.tolist() == [[1, 1], [1, 0]]
    # The authors' rule knows capitals, and matches nothing by them.
    rule = SeedRule(seeds, tokenisation="published")
    assert [len(seed.tokens) for seed in rule.seeds] == [1, 0, 0, 0, 0, 1]


def test_ties():
    seeds = {"b": ["x", "both"], "a": ["y", "both"], "c": ["z"]}
    texts = [f"both {number}" for number in range(200)] + ["z z both", "nothing"]
    first = SeedRule(seeds, ties="first").match(texts)
    assert set(first.labels[:200]) == {0} and first.labels[200:].tolist() == [2, -1]
    assert first.tied[:200].all() and not first.tied[200:].any()
    drawn = [SeedRule(seeds, ties="random", seed=s).match(texts).labels for s in (1, 2)]
    for labels in drawn:
        assert 70 < np.sum(labels[:200] == 0) < 130 and set(labels[:200]) == {0, 1}
    assert (drawn[0] != drawn[1]).any()
    # By the text, wherever it stands.
    turned = SeedRule(seeds, ties="random", seed=1).match(texts[::-1]).labels[::-1]
    np.testing.assert_array_equal(turned, drawn[0])
    rule = SeedRule(seeds)
    assert rule.shared_seeds == {"both": ("a", "b")}
    assert rule.match([]).counts.shape == (0, 3)


@pytest.mark.parametrize(
    ("seeds", "message"),
    [
        ({}, "two classes at least, found none"),
        ({"a": ["b"]}, "two classes at least, found 'a'"),
        ({"a": ["b"], "c": []}, "the class 'c' has no seed"),
        ({"a": ["b"], "c": [" "]}, "the class 'c' has no seed"),
        ({"a": ["b"], "c": "word"}, "'c' must be a list of texts, found 'word'"),
        ({"a": ["b"], "c": 5}, "'c' must be a list of texts, found 5"),
        ({"a": ["b"], "c": {"d": 1}}, "'c' must be a list of texts, found {"),
        ({"a": ["b"], "c": [3]}, r"'c' must be a list of texts, found \[3\]"),
    ],
)
def test_mistakes(seeds, message):
    with pytest.raises(ValueError, match=message):
        SeedRule(seeds)
    with pytest.raises(ValueError, match="ties"):
        SeedRule({"a": ["b"], "c": ["d"]}, ties="last")
    with pytest.raises(ValueError, match="tokenisation"):
        SeedRule({"a": ["b"], "c": ["d"]}, tokenisation="bert")
