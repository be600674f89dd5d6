"""Tail, proportional tail, exponential, Polyak, SWA and triggered averages."""

from __future__ import annotations

import math

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf import averaging

ITERATES = np.random.default_rng(5).normal(size=(41, 3))  # theta_0, theta_1, ...


def sum_of_squares(weights):
    return float(np.sum(np.square(weights[0])))


def proposals(average, on_device=False):
    """Returns average and length after each of the updates."""
    average.start([tf.constant(ITERATES[0]) if on_device else ITERATES[0]])
    found = []
    for theta in ITERATES[1:]:
        weights = [tf.constant(theta) if on_device else theta]
        average.update(weights)
        _, proposed, length = average.evaluate(sum_of_squares, weights)
        found.append((np.array(proposed[0]), length))
    return found


NAIVE = {
    "tail": (
        lambda: averaging.TailAverage(7),
        lambda t: ITERATES[t] if t < 7 else ITERATES[7 : t + 1].mean(0),
        lambda t: max(1, t - 6),
    ),
    "swa": (
        lambda: averaging.StochasticWeightAverage(5, 4),
        lambda t: ITERATES[t] if t < 5 else ITERATES[5 : t + 1 : 4].mean(0),
        lambda t: max(1, (t - 5) // 4 + 1),
    ),
    "polyak": (
        averaging.PolyakAverage,
        lambda t: ITERATES[: t + 1].mean(0),
        lambda t: t + 1,
    ),
    "exponential": (
        lambda: averaging.ExponentialAverage(0.8),
        lambda t: (
            0.8**t * ITERATES[0]
            + sum(0.2 * 0.8 ** (t - i) * ITERATES[i] for i in range(1, t + 1))
        ),
        lambda t: t,
    ),
    "scheduled": (
        # beta_t = t / (t + 1) makes the mean of all.
        lambda: averaging.ExponentialAverage(lambda t: t / (t + 1)),
        lambda t: ITERATES[: t + 1].mean(0),
        lambda t: t,
    ),
    "exact proportional": (
        lambda: averaging.ProportionalTailAverage(0.3, blocks=40),
        lambda t: ITERATES[t + 1 - -(-3 * t // 10) : t + 1].mean(0),
        lambda t: -(-3 * t // 10),
    ),
}


@pytest.mark.parametrize("on_device", [False, True])
@pytest.mark.parametrize("name", NAIVE)
def test_equals_its_definition(name, on_device):
    make, expected, length = NAIVE[name]
    for t, (found, count) in enumerate(proposals(make(), on_device), start=1):
        np.testing.assert_allclose(found, expected(t), rtol=1e-10, atol=1e-12)
        assert count == length(t), t


@pytest.mark.parametrize("share", [0.05, 0.25, 0.5, 1.0])
def test_proportional_tail_in_few_blocks_has_its_length_and_nearly_its_mean(share):
    average = averaging.ProportionalTailAverage(share, blocks=4)
    average.start([np.zeros(1)])
    for t in range(1, 2001):
        average.update([np.array([float(t)])])
        wanted = math.ceil(share * t)
        if t % 7 and t > 30:
            continue
        (found,), length = average.proposal([np.zeros(1)])
        assert length == wanted
        # Of iterates that go on evenly, a part of a block is off by half the block.
        block = max(2, wanted / 3)
        exact = t - (wanted - 1) / 2
        assert abs(found[0] - exact) <= block * block / (8 * wanted) + 1e-9
        assert len(average.get_state()["sums"]) <= 8


def test_triggered_average_begins_after_evaluations_without_gain():
    losses = [5.0, 4.0, 4.5, 4.2, 9.0, 9.0, 9.0]
    average = averaging.TriggeredAverage(patience=2)
    lengths = []
    for loss, theta in zip(losses, ITERATES, strict=False):
        average.update([theta])
        lengths.append(average.evaluate(lambda w, loss=loss: loss, [theta]).length)
    assert lengths == [1, 1, 1, 1, 1, 2, 3]
    assert average.start_step == 5


def test_triggered_average_begins_at_the_latest_step():
    average = averaging.TriggeredAverage(patience=50, latest=3)
    lengths = [length for _, length in proposals(average)]
    assert lengths[:5] == [1, 1, 1, 2, 3]


@pytest.mark.parametrize("name", [*NAIVE, "triggered", "few blocks"])
def test_state_goes_through_a_copy(name):
    makes = {
        **{key: value[0] for key, value in NAIVE.items()},
        "triggered": lambda: averaging.TriggeredAverage(3),
        "few blocks": lambda: averaging.ProportionalTailAverage(0.4, blocks=2),
    }
    one, first, second = (makes[name]() for _ in range(3))
    one.start([ITERATES[0]])
    first.start([ITERATES[0]])
    for t, theta in enumerate(ITERATES[1:], start=1):
        current = first if t <= 20 else second
        if t == 21:
            second.set_state(first.get_state())
        for average in (one, current):
            average.update([theta])
        a, b = (x.evaluate(sum_of_squares, [theta]) for x in (one, current))
        np.testing.assert_array_equal(a.weights[0], b.weights[0])
        assert a.length == b.length


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: averaging.TailAverage(0), "`start` must be an integer >= 1"),
        (lambda: averaging.ExponentialAverage(1.0), "`decay` must lie in"),
        (lambda: averaging.ExponentialAverage("0.9"), "must be a number, found '0.9'"),
        (lambda: averaging.ProportionalTailAverage("a"), "must be a number"),
        (lambda: averaging.ProportionalTailAverage(0.0), "`share` must lie in"),
        (lambda: averaging.TriggeredAverage(0), "`patience` must be"),
        (lambda: averaging.StochasticWeightAverage(1, 0), "`every` must be"),
    ],
)
def test_mistakes_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("hundredths", [7, 28, 55])
def test_shares_are_meant_as_they_are_written(hundredths):
    average = averaging.ProportionalTailAverage(hundredths / 100, blocks=60)
    average.start([np.zeros(1)])
    for t in range(1, 201):
        average.update([np.array([float(t)])])
        _, length = average.proposal([np.zeros(1)])
        assert length == -(-hundredths * t // 100)
