"""What seeds say of each other, words that may be seeds, and folds of documents."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rlm_tf.labelling import SeedRule, WordList, seed_agreement, suggest_seeds
from rlm_tf.labelling.folds import document_folds

_SEEDS = {"a": ["a0", "a1"], "b": ["b0", "b1"], "c": ["c0", "c1"]}


def _rows(texts):
    words = WordList.build(texts, min_documents=1)
    return words, words.rows(texts, 12)


# === Agreement ===


def test_independent_seeds_tell_their_accuracy():
    rng = np.random.default_rng(0)
    right, texts = 0.8, []
    for true in rng.integers(3, size=6000):
        wrong = rng.choice([c for c in range(3) if c != true], 2)
        own = np.where(rng.random(2) < right, true, wrong)
        # Two different seeds, of one class or of two.
        texts.append(f"{'abc'[own[0]]}0 {'abc'[own[1]]}1")
    rule = SeedRule(_SEEDS)
    found = seed_agreement(rule, rule.match(texts))
    assert found.documents == 6000
    assert found.agreement == pytest.approx(right**2 + (1 - right) ** 2 / 2, abs=0.02)
    assert found.accuracy == pytest.approx(right, abs=0.02)


def test_pairs_of_seeds_are_counted_by_hand():
    rule = SeedRule(_SEEDS)
    # One pair of one class; three pairs, one of one class; one seed twice: no pair.
    found = seed_agreement(rule, rule.match(["a0 a1", "a0 a1 b0", "a0 a0", "x"]))
    assert found.documents == 2
    assert found.agreement == pytest.approx((1 + 1 / 3) / 2)


def test_seeds_that_never_meet_or_never_agree():
    rule = SeedRule(_SEEDS)
    # What one seed covers of another is no second opinion.
    covered = SeedRule({"a": ["game*", "games", "big games"], "b": ["game", "x"]})
    texts = ["games", "big games", "games x", "game"]
    alike = seed_agreement(covered, covered.match(texts))
    assert alike.documents == 2 and alike.agreement == 0.0
    none = seed_agreement(rule, rule.match(["a0", "b1 b1"]))
    assert none.documents == 0
    assert math.isnan(none.agreement) and math.isnan(none.accuracy)
    never = seed_agreement(rule, rule.match(["a0 b0", "b0 c1"]))
    assert never.agreement == 0 and never.accuracy == pytest.approx(1 / 3)


# === Suggestions ===


def _planted():
    rng = np.random.default_rng(1)
    texts, labels = [], []
    for i in range(300):
        kind = "abc"[i % 3]
        words = [f"{kind}0" if i % 2 else "nothing", "the", "1984"]
        words += [f"{kind}word{j}" for j in range(3) if rng.random() < 0.5]
        words += [f"any{j}" for j in range(4) if rng.random() < 0.5]
        texts.append(" ".join(words))
        labels.append(i % 3)
    return texts, np.array(labels)


def test_planted_words_are_suggested_and_nothing_else():
    texts, labels = _planted()
    rule = SeedRule(_SEEDS)
    words, rows = _rows(texts)
    matches = rule.match(texts)
    found = suggest_seeds(
        rule, words, rows, labels, labelled=matches.labels >= 0, most=3
    )
    assert [own.class_name for own in found] == [*"aaabbbccc"]
    for name in "abc":
        own = {seed.text for seed in found if seed.class_name == name}
        assert own == {f"{name}word{j}" for j in range(3)}
    one = next(seed for seed in found if seed.text == "aword1")
    has = np.array(["aword1" in text.split() for text in texts])
    assert one.documents == has.sum()
    assert one.new == (has & (matches.labels < 0)).sum()


def test_scores_are_log_odds_in_deviations():
    texts, labels = _planted()
    words, rows = _rows(texts)
    found = suggest_seeds(SeedRule(_SEEDS), words, rows, labels, most=1)
    best = found[0]
    sets = [set(text.split()) for text in texts]
    every = [*words.words]
    own, others = (
        np.array(
            [sum(w in s for s, k in zip(sets, keep, strict=True) if k) for w in every]
        )
        for keep in (labels == 0, labels != 0)
    )
    prior = 10 * (own + others) / (own + others).sum() * len(words)
    at, total = every.index(best.text), prior.sum()
    odds = [
        math.log((y[at] + prior[at]) / (y.sum() + total - y[at] - prior[at]))
        for y in (own, others)
    ]
    spread = math.sqrt(sum(1 / (y[at] + prior[at]) for y in (own, others)))
    assert best.score == pytest.approx((odds[0] - odds[1]) / spread, rel=1e-6)


def test_suggestions_of_documents_without_labels():
    texts, labels = _planted()
    words, rows = _rows(texts)
    assert suggest_seeds(SeedRule(_SEEDS), words, rows, np.full(300, -1)) == []
    with pytest.raises(ValueError, match=r"`tokens` must be \[N, T\]"):
        suggest_seeds(SeedRule(_SEEDS), words, rows, labels[:5])


# === Folds ===


def test_equal_documents_are_in_one_fold_and_classes_in_all():
    rows = np.repeat(np.arange(30), 2)[:, np.newaxis]
    labels = np.repeat(np.arange(30) % 2, 2)
    labels[-2:] = -1
    found = document_folds(rows, labels, 3, seed=4)
    assert (found[-2:] == -1).all() and set(found[:-2]) == {0, 1, 2}
    assert (found[::2] == found[1::2]).all()
    for fold in range(3):
        counts = np.bincount(labels[found == fold], minlength=2)
        assert abs(counts[0] - counts[1]) <= 2
    assert (document_folds(rows, labels, 3, seed=5) != found).any()
    with pytest.raises(ValueError, match="3 folds need so many different documents"):
        document_folds(rows[:4], labels[:4], 3, seed=0)
