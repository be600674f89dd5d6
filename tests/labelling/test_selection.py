"""What is selected: the oracle, and what must hold of any draw."""

from __future__ import annotations

import numpy as np
import pytest

from rlm_tf.labelling import (
    normalised_loss_scores,
    random_flip,
    select_by_learning_order,
    select_confident,
)
from tests.references.weak_supervision_reference import ORACLE


@pytest.mark.parametrize("row", ORACLE["select"])
@pytest.mark.parametrize("per_class", [True, False])
def test_confident_ones(row, per_class):
    found = select_confident(
        row["confidence"], row["labels"], fraction=row["fraction"], per_class=per_class
    )
    expected = row["per_class" if per_class else "overall"]
    assert found.dtype == bool and np.flatnonzero(found).tolist() == expected


@pytest.mark.parametrize("row", ORACLE["learning_order"])
def test_what_was_learnt_first(row):
    found = select_by_learning_order(
        row["predictions"], row["labels"], fraction=row["fraction"]
    )
    assert np.flatnonzero(found).tolist() == row["selected"]


def test_a_class_that_is_never_learnt_keeps_all():
    labels = [0, 0, 0, 0, 1, 1, -1]
    said = [[1, 1, 1, 0, 1, 0, 1], [0, 1, 1, 0, 1, 1, 1]]
    found = select_by_learning_order(said, labels, fraction=0.75)
    assert found.tolist() == [True] * 4 + [True, False, False]


def test_losses_less_the_mean_of_their_epoch():
    own = ORACLE["normalised_loss"]
    np.testing.assert_allclose(
        normalised_loss_scores(own["losses"]), own["scores"], atol=1e-9
    )


def test_flips_keep_what_is_taken_for_what():
    rng = np.random.default_rng(0)
    true = rng.integers(0, 3, 400)
    labels = np.where(rng.random(400) < 0.7, true, rng.integers(-1, 3, 400))
    found = random_flip(labels, true, seed=1)
    np.testing.assert_array_equal(found == -1, labels == -1)
    for label in range(3):
        for other in range(3):
            pair = (true == label) & (found == other)
            assert pair.sum() == ((true == label) & (labels == other)).sum()
    assert (found != labels).sum() > 20
    np.testing.assert_array_equal(found, random_flip(labels, true, seed=1))
    assert (found != random_flip(labels, true, seed=2)).any()


def test_mistakes():
    with pytest.raises(ValueError, match="must be"):
        select_confident([0.1, 0.2], [0])
    with pytest.raises(ValueError, match="fraction"):
        select_confident([0.1], [0], fraction=1.5)
    with pytest.raises(ValueError, match="no number"):
        select_confident([np.nan, 0.2], [0, -1])
    assert select_confident([np.nan, 0.2], [-1, 0]).tolist() == [False, True]
    with pytest.raises(ValueError, match=r"\[E, N\] and `labels` \[N\], found \[1\]"):
        select_by_learning_order([1], [1])
    with pytest.raises(ValueError, match=r"`losses` must be \[E, N\]"):
        normalised_loss_scores([1.0])
