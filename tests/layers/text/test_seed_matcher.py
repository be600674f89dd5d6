"""The rule in a graph is the rule in Python, and goes into a SavedModel."""

from __future__ import annotations

import string

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rlm_tf.labelling import SeedRule
from rlm_tf.layers.text.seed_matcher import SeedMatcher
from tests.references.weak_supervision_reference import ORACLE

_TOY = ORACLE["seed_rule_toy"]
_SEEDS = {
    "a": ["space", "space shuttle", "tax*", "same-sex", "ΓΣ", "i̇z"],
    "b": ["goal", "match point", "shuttle launch site", "tax", "ßx", "don't"],
    "c": ["old ta*", "taxi*", "point"],
}


@pytest.fixture(scope="module", params=["words", "published"])
def rules(request):
    """Rules with both treatments of ties, each with its matcher."""
    found = [
        SeedRule(_SEEDS, tokenisation=request.param, ties=ties)
        for ties in ("first", "abstain")
    ]
    return [(rule, SeedMatcher(rule)) for rule in found]


_WORDS = [
    *("space", "shuttle", "launch", "site", "taxes", "taxi", "tax", "taxis", "old"),
    *("Same", "sex", "same-sex", "match", "point", "POINT,", "GOAL!", "γς", "ΓΣ", "Σ"),
    *("İz", "İ", "SSX", "ẞx", "don't", "dont", "don\u2019t", "\n", "\x00", "\u2028"),
]
_TEXT = st.one_of(
    st.lists(st.sampled_from(_WORDS), max_size=9).map(" ".join),
    st.lists(st.sampled_from([*_WORDS, *string.punctuation]), max_size=9).map("".join),
)


@settings(max_examples=80, deadline=None)
@given(texts=st.lists(st.one_of(_TEXT, st.text(max_size=20)), max_size=3))
@example(texts=[])
@example(texts=["space shuttle launch site taxi old taxi", "", "tax taxes\x85point"])
@example(texts=["ΓΣ γς γσ ΓΣ' ΓΣ\u0301 ΣΓΣ", "İz i̇z I\u0307Z", "ßx ẞx SSX"])  # noqa: RUF001
def test_graphs_and_python_agree(rules, texts):
    for rule, matcher in rules:
        expected = rule.match(texts)
        data = [text.encode("utf-8", "surrogatepass") for text in texts]
        found = matcher.match(tf.constant(data, tf.string, [len(data)]))
        np.testing.assert_array_equal(found.counts, expected.counts)
        np.testing.assert_array_equal(found.labels, expected.labels)
        assert found.labels.dtype == found.counts.dtype == tf.int32


def test_the_oracle():
    matcher = SeedMatcher(SeedRule(_TOY["seeds"]))
    found = matcher.match(tf.constant(_TOY["texts"]))
    np.testing.assert_array_equal(found.counts, _TOY["counts"])
    np.testing.assert_array_equal(found.labels, _TOY["labels_abstain"])


def test_bytes_that_are_no_text(rules):
    data = [b"\xff goal", b"space\xfe\xfe goal \xe4\xb8", b"tax\xc3es"]
    for rule, matcher in rules:
        texts = [own.decode("utf-8", "replace") for own in data]
        np.testing.assert_array_equal(
            matcher.match(tf.constant(data)).counts, rule.match(texts).counts
        )


def test_it_is_saved(tmp_path):
    module = tf.Module()
    module.matcher = SeedMatcher(SeedRule(_SEEDS))
    module.match = tf.function(
        lambda texts: module.matcher.match(texts)._asdict(),
        input_signature=[tf.TensorSpec([None], tf.string)],
    )
    tf.saved_model.save(module, str(tmp_path))
    served = tf.saved_model.load(str(tmp_path))
    found = served.match(tf.constant(["a space shuttle", "the point", "nothing"]))
    assert found["labels"].numpy().tolist() == [0, 2, -1]


def test_mistakes():
    with pytest.raises(ValueError, match="abstain or first, found random"):
        SeedMatcher(SeedRule(_SEEDS, ties="random"))
    dead = {"a": ["same-sex"], "b": ["A"]}
    with pytest.raises(ValueError, match="no seed of `rule` can match anything"):
        SeedMatcher(SeedRule(dead, tokenisation="published"))
