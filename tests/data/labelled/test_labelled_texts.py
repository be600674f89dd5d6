"""Samples and splits of labelled texts: shares of classes, seeds, nothing twice."""

from __future__ import annotations

import numpy as np
import pytest

from rlm_tf.data import LabelledTexts


def _made(counts=(60, 30, 10), pairs=False):
    labels = np.repeat(np.arange(len(counts)), counts).astype(np.int32)
    texts = [f"t{place}" for place in range(len(labels))]
    second = [f"s{place}" for place in range(len(labels))] if pairs else None
    return LabelledTexts(texts, labels, tuple("abc"[: len(counts)]), second)


def test_samples_have_the_shares_of_classes():
    data = _made(pairs=True)
    found = data.sample(20, seed=1)
    assert np.bincount(found.labels).tolist() == [12, 6, 2]
    assert len(set(found.texts)) == 20 and found.names == ("a", "b", "c")
    assert [t[1:] for t in found.texts] == [t[1:] for t in found.texts_b]
    for text, label in zip(found.texts, found.labels, strict=True):
        assert data.labels[int(text[1:])] == label
    assert found.texts == data.sample(20, seed=1).texts != data.sample(20, 2).texts


def test_splits_are_disjoint_and_whole():
    data = _made()
    kept, held = data.split(0.1, seed=3)
    assert len(held) == 10 and sorted(kept.texts + held.texts) == sorted(data.texts)
    assert np.bincount(held.labels).tolist() == [6, 3, 1]
    numbers = LabelledTexts(["x"] * 10, np.arange(10, dtype=np.float32))
    kept, held = numbers.split(0.3, seed=0)
    assert numbers.is_regression and len(held) == 3
    assert sorted([*kept.labels, *held.labels]) == list(range(10))


def test_mistakes():
    with pytest.raises(ValueError, match="at most the 100 examples there are"):
        _made().sample(101, seed=0)
    with pytest.raises(ValueError, match="leaves nothing for one of two parts"):
        _made((2,)).split(0.1, seed=0)
