"""Information of segments: a source of which it is known, folds, critics, mistakes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.data import MarkovSource
from rlm_tf.evaluation import segment_information
from rlm_tf.evaluation.information import critic_training
from rlm_tf.evaluation.information import segment_information as module
from rlm_tf.evaluation.information.critics import KINDS, make_critic

# Four states that lead to one another in a circle, as a rule.
_SOURCE = MarkovSource(0.04 + 0.84 * np.roll(np.eye(4), 1, axis=1))
_TEXT = _SOURCE.sample(6000, seed=1)


@pytest.fixture
def few_steps(monkeypatch):
    monkeypatch.setattr(critic_training, "_EVERY", 25)


# === The estimate ===


@pytest.mark.landing
def test_it_comes_near_a_known_information_and_not_above(few_steps):
    found = segment_information(
        _TEXT, segment=2, gap=1, folds=3, seed=1, most_steps=250
    )
    truth = _SOURCE.information(1)
    assert 0.8 * truth < found.mine.mean
    assert found.mine.mean < truth + 2 * found.mine.standard_error
    # The honest bound is close, and pairs that share nothing tell nothing.
    assert found.nwj.mean == pytest.approx(found.mine.mean, abs=0.05)
    assert abs(found.shuffled.mean) < 0.05
    assert found.dropout == 0.0
    # Two X each share a token with the Y of an earlier one: not drawn apart.
    number = found.pairs
    apart = number * (number - 1) - (number - 1) - (number - 2)
    assert found.ceiling == pytest.approx(math.log(apart))
    for each in (found.mine, found.nwj, found.shuffled):
        assert each.mean == pytest.approx(np.mean(each.folds))
        assert each.deviation == pytest.approx(np.std(each.folds, ddof=1))
        assert each.standard_error == pytest.approx(each.deviation / math.sqrt(3))


@pytest.mark.landing
def test_thirty_states_and_as_much_text_as_people_have():
    """At least eight tenths of the truth, at most two standard errors above it."""
    rows = np.random.default_rng(1).dirichlet(np.full(30, 0.1), size=30)
    source = MarkovSource(rows)
    estimator = module.SegmentEstimator(source.sample(200_000, 1), segment=8, gap=1)
    folds = [estimator.fold(number, dropout=0.0) for number in range(3)]
    truth = source.information(1)
    mine = [fold.mine for fold in folds]
    error = np.std(mine, ddof=1) / math.sqrt(3)
    assert 0.8 * truth < np.mean(mine) < truth + 2 * error
    for fold in folds:
        assert fold.nwj == pytest.approx(fold.mine, abs=0.02)
        assert abs(fold.shuffled) < 0.02


def test_a_constant_text_tells_nothing(few_steps):
    text = np.zeros(600, int)
    found = segment_information(text, segment=2, gap=0, folds=3, most_steps=50)
    for each in (found.mine, found.nwj, found.shuffled):
        assert each.mean == 0.0


@pytest.mark.parametrize("objective", ["nwj", "info_nce"])
def test_other_objectives_and_critics(few_steps, monkeypatch, objective):
    monkeypatch.setattr(critic_training, "_EVERY", 30)
    monkeypatch.setattr(module, "_MOST_PAIRS", 120)
    monkeypatch.setattr(critic_training, "_BATCH", 64)
    monkeypatch.setattr(module, "_DROPOUTS", (0.0,))
    options = {
        "critic": {"nwj": "mlp", "info_nce": "separable"}[objective],
        "objective": objective,
        "most_steps": 60,
    }
    found = segment_information(_TEXT, segment=2, gap=0, folds=3, **options)
    again = segment_information(_TEXT, segment=2, gap=0, folds=3, **options)
    assert found == again
    assert 0.5 * _SOURCE.information(0) < found.mine.mean


def test_a_critic_that_finds_nothing_is_a_constant(few_steps, monkeypatch):
    """Words in random order: a critic that validation does not bear out is left."""
    monkeypatch.setattr(module, "_DROPOUTS", (0.0,))
    text = np.random.default_rng(0).integers(200, size=900)
    found = segment_information(text, segment=5, gap=0, folds=3, most_steps=250)
    assert 0 in found.steps
    assert found.mine.folds[found.steps.index(0)] == 0.0
    assert abs(found.mine.mean) < 0.05


def test_a_fold_does_not_depend_on_those_before(few_steps):
    options = {"segment": 2, "gap": 0, "folds": 3, "seed": 4, "most_steps": 50}
    estimator = module.SegmentEstimator(_TEXT, **options)
    first = estimator.fold(0)
    second = estimator.fold(1, first.dropout)
    alone = module.SegmentEstimator(_TEXT, **options)
    assert alone.fold(1, first.dropout) == second
    without = alone.fold(1, first.dropout, control=False)
    assert without.mine == second.mine and math.isnan(without.shuffled)


@pytest.mark.landing
def test_large_ids_are_numbered_anew(few_steps):
    options = {"segment": 2, "gap": 0, "folds": 3, "most_steps": 50}
    found = segment_information(_TEXT, **options)
    assert segment_information(10**7 * (_TEXT + 1).astype(np.int64), **options) == found


@pytest.mark.landing
def test_it_is_said_what_ended_training(few_steps):
    """More steps find more where validation still rises; where it falls, nothing."""
    options = {"segment": 2, "gap": 0, "folds": 3, "seed": 4}
    found = [
        module.SegmentEstimator(_TEXT, **options, most_steps=steps).fold(0, 0.0)
        for steps in (25, 2000)
    ]
    assert [fold.capped for fold in found] == [True, False]
    assert found[0].steps == 25 < found[1].steps
    assert found[0].mine < found[1].mine
    assert module.joint_information(found).capped == 1


# === Pairs ===


@pytest.mark.parametrize("gap", [0, 3])
def test_no_pair_lies_over_an_edge(gap):
    edges = np.linspace(0, 161, 5).astype(int)
    text = np.arange(161) % 7
    estimator = module.SegmentEstimator(text, segment=5, gap=gap, folds=4)
    train = estimator._joined([1, 3])
    expected = [
        first
        for block in (1, 3)
        for first in range(edges[block], edges[block + 1])
        if first + 10 + gap <= edges[block + 1]
    ]
    assert train.first.tolist() == expected
    np.testing.assert_array_equal(train.second, train.first + 5 + gap)
    spaced = estimator._spaced(1)
    assert spaced.first[0] == edges[1]
    assert spaced.second[-1] + 5 <= edges[2]
    np.testing.assert_array_equal(np.diff(spaced.first), 5)
    # Pairs that share nothing have the same segments, from half a block away.
    turned = estimator._joined([1, 3], half_turned=True)
    np.testing.assert_array_equal(turned.first, train.first)
    for block in (1, 3):
        inside = (train.first >= edges[block]) & (train.first < edges[block + 1])
        ours, theirs = train.second[inside], turned.second[inside]
        np.testing.assert_array_equal(np.sort(theirs), ours)
        away = np.abs(theirs - ours)
        assert np.all(np.abs(away - len(ours) / 2) <= 1)


def test_pairs_that_share_tokens_are_not_drawn_apart():
    first = np.array([0, 5, 10])
    for gap, expected in ((0, {(1, 0), (2, 1)}), (3, {(1, 0), (2, 0), (2, 1)})):
        split = critic_training.Split(first, first + 5 + gap)
        shared = ~split.apart(5) & ~np.eye(3, dtype=bool)
        assert {(int(i), int(j)) for i, j in np.argwhere(shared)} == expected


def test_segments_begin_at_multiples_of_a_stride():
    text = np.arange(133) % 7
    estimator = module.SegmentEstimator(text, segment=4, gap=4, folds=3, stride=4)
    for split in (estimator._joined([0, 2]), estimator._spaced(1)):
        assert len(split.first) > 1
        assert not np.any(split.first % 4) and not np.any(split.second % 4)


def test_a_long_block_has_no_more_pairs_than_are_wanted():
    text = np.arange(3 * 200_000) % 7
    spaced = module.SegmentEstimator(text, segment=5, gap=0, folds=3)._spaced(0)
    assert 1000 < len(spaced.first) <= module._MOST_PAIRS
    assert set(np.diff(spaced.first) % 5) == {0}


# === Critics ===


@pytest.mark.parametrize("kind", KINDS)
def test_critics_score_every_pair_and_begin_anew(rng, kind):
    critic = make_critic(kind, 7, 3, seed=2)
    x, y = rng.integers(7, size=(4, 3)), rng.integers(7, size=(5, 3))
    scores = critic(x, y)
    assert scores.shape == (4, 5)
    np.testing.assert_allclose(critic(x[1:2], y[3:4])[0, 0], scores[1, 3], rtol=1e-5)
    # Order counts once positions have learnt different weights.
    for positions in critic.positions:
        positions.assign(tf.constant(rng.normal(size=positions.shape), tf.float32))
    assert np.any(np.abs(critic(x[:, ::-1], y) - critic(x, y)) > 1e-3)
    critic.restart()
    np.testing.assert_array_equal(critic(x, y), scores)
    critic.dropout.assign(0.5)
    step = tf.constant(3, tf.int64)
    np.testing.assert_array_equal(critic(x, y, step), critic(x, y, step))
    assert np.any(critic(x, y, step) != critic(x, y, step + 1))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"folds": 2}, "`folds` must be an integer >= 3"),
        ({"segment": 900}, "the text has 6,000. Give fewer `folds`"),
        ({"critic": "deep"}, "`critic` must be one of separable, mlp, large"),
        ({"objective": "x"}, "`objective` must be one of jsd, nwj, info_nce"),
        ({"most_steps": 0}, "`most_steps` must be an integer >= 1"),
        ({"gap": -1}, "`gap` must be an integer >= 0"),
        ({"stride": 900}, "with `stride` 900 a fold has 0 pairs to be tested on"),
    ],
)
def test_mistakes(options, message):
    with pytest.raises(ValueError, match=message):
        segment_information(_TEXT, **options)
