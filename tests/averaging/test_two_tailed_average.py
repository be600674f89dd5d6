"""The state machine of Two-Tailed Averaging."""

from __future__ import annotations

import itertools
import json
import math
import pathlib
from fractions import Fraction

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.averaging import TwoTailedAverage
from tests.references import two_tailed_reference

TRACES = json.loads(
    (pathlib.Path(__file__).parents[1] / "references/two_tailed_traces.json").read_text(
        "utf-8"
    )
)
SEQUENCES = st.lists(st.integers(-40, 40), min_size=1, max_size=120)


def square(weights):
    return float(weights[0]) ** 2


def run(average, iterates, period, loss_fn=square):
    """Returns what an average reports after every `period` iterates."""
    reports = []
    for t, theta in enumerate(iterates, start=1):
        weights = [np.array(theta, np.float64)]
        average.update(weights)
        if t % period == 0:
            loss, weights, length = average.evaluate(loss_fn, weights)
            reports.append(
                (
                    loss,
                    float(weights[0]),
                    length,
                    average.short_length,
                    average.long_length,
                )
            )
    return reports


# === Oracles ===


@pytest.mark.parametrize(("trace", "extended"), [("A_core", 0), ("A_ext_P3", 1)])
def test_trace(trace, extended):
    average = TwoTailedAverage(patience=3, extended=bool(extended))
    found = run(average, TRACES["iterates_A"], TRACES["E"])
    expected = [
        (r["ret_loss"], r["ret_theta"], r["ret_len"], r["S"], r["L"])
        for r in TRACES["traces"][trace]
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("reset", ["switch", "both"])
@pytest.mark.parametrize("extended", [False, True])
@hypothesis.settings(max_examples=150, deadline=None)
@hypothesis.given(
    numbers=SEQUENCES, period=st.integers(1, 4), patience=st.integers(1, 4)
)
def test_equals_the_reference_that_keeps_all_iterates(
    extended, reset, numbers, period, patience
):
    # A loss with plateaus and several basins, so that every branch is taken.
    def loss(theta):
        return abs((theta * 8 // 1) % 23 - 7) + abs(theta) / 64

    iterates = [Fraction(n, 4) for n in numbers]
    expected = two_tailed_reference.run(
        iterates, loss, period, extended=extended, patience=patience, reset=reset
    )
    average = TwoTailedAverage(patience, extended, reset=reset)
    # Exact fractions also here: whether averages tie may not depend on rounding.
    found = run_exactly(average, iterates, period, loss)
    assert found == [tuple(report) for report in expected]


def run_exactly(average, iterates, period, loss):
    """As `run`, with the average's sums in fractions."""
    reports = []
    for t, theta in enumerate(iterates, start=1):
        weights = [np.array(float(theta))]
        average.update(weights)
        if t % period:
            continue

        def loss_fn(weights, t=t):
            return loss(exact(weights[0], t))

        # Means of at most 120 multiples of 1/4 are told apart by double precision.
        def exact(value, t):
            return Fraction(float(value)).limit_denominator(4 * 120)

        result = average.evaluate(loss_fn, weights)
        reports.append(
            (
                Fraction(result.loss).limit_denominator(64 * 4 * 120),
                exact(result.weights[0], t),
                result.length,
                average.short_length,
                average.long_length,
            )
        )
    return reports


# === Propositions ===


@pytest.mark.parametrize("extended", [False, True])
@hypothesis.settings(max_examples=100, deadline=None)
@hypothesis.given(
    losses=st.lists(st.floats(allow_nan=True), min_size=1, max_size=90),
    period=st.integers(1, 5),
)
def test_lengths_are_multiples_of_the_period_and_ordered(extended, losses, period):
    """Proposition 1 (i) and (ii), for any losses whatever."""
    source = iter(losses)
    average = TwoTailedAverage(extended=extended)
    for t in range(1, 10**6):
        average.update([np.zeros(1)])
        if t % period:
            continue
        try:
            average.evaluate(lambda weights: next(source), [np.zeros(1)])
        except StopIteration:
            break
        assert average.short_length % period == average.long_length % period == 0
        assert average.short_length <= average.long_length <= t


@hypothesis.settings(max_examples=100, deadline=None)
@hypothesis.given(numbers=SEQUENCES, period=st.integers(1, 4))
def test_losses_at_switches_fall_where_the_loss_is_convex(numbers, period):
    """Proposition 5, and (iii) of Proposition 1; Algorithm 1 only."""
    average = TwoTailedAverage(extended=False)
    at_switches = []
    for t, theta in enumerate(numbers, start=1):
        weights = [np.array(float(theta))]
        average.update(weights)
        if t % period:
            continue
        loss, _, _ = average.evaluate(square, weights)
        if average.event == "switch":
            at_switches.append(loss)
        else:
            assert average.losses["short"] > average.losses["long"]
    assert all(b <= a + 1e-9 for a, b in itertools.pairwise(at_switches))


@hypothesis.settings(max_examples=100, deadline=None)
@hypothesis.given(
    steps=st.lists(st.integers(0, 3), min_size=2, max_size=60), period=st.integers(1, 5)
)
def test_lengths_are_bounded_by_the_optimal_one(steps, period):
    """Proposition 2, under the assumptions: S < Delta and L < 2 Delta + E.

    The iterates are 1, 2, 3, ..., so that an average tells its length. The loss is the
    distance to the optimal length, which never falls and stays within what there is.
    """
    average = TwoTailedAverage(extended=False)
    optimal = 0
    for t in range(1, period * len(steps) + 1):
        average.update([np.array(float(t))])
        if t % period:
            continue
        optimal = max(optimal, min(optimal + steps[t // period - 1], t), 1)

        def loss_fn(weights, t=t, optimal=optimal):
            length = round(2 * (t - float(weights[0])) + 1)
            return abs(length - optimal)

        average.evaluate(loss_fn, [np.array(float(t))])
        assert average.short_length < max(optimal, 1)
        assert average.long_length < 2 * optimal + period


# === Behaviour ===


def test_overfitting_makes_the_long_average_stagnate():
    iterates = [8.0, 4.0, 2.0, 1.0, 0.5, 0.1, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
    events = {}
    for reset in ("switch", "both"):
        average = TwoTailedAverage(3, reset=reset)
        events[reset] = []
        for theta in iterates:
            average.update([np.array(theta)])
            average.evaluate(square, [np.array(theta)])
            events[reset].append(average.event)
    assert "empty both" in events["both"]
    assert "empty both" not in events["switch"]
    assert events["switch"].count("switch") > events["both"].count("switch")


def test_not_a_number_never_wins():
    average = TwoTailedAverage()
    for theta in (3.0, 2.0, math.nan):
        average.update([np.array(1.0)])
        loss, _, _ = average.evaluate(lambda w, theta=theta: theta, [np.array(1.0)])
    assert loss == math.inf
    assert average.event == "switch"


def test_tensors_give_what_arrays_give():
    on_host, on_device = TwoTailedAverage(), TwoTailedAverage()
    rng = np.random.default_rng(3)
    variable = tf.Variable(np.zeros(5), dtype=tf.float64)
    for t in range(1, 31):
        variable.assign(rng.normal(size=5) + 9.0 / t)
        on_device.update([variable])
        on_host.update([variable.numpy()])
        if t % 3 == 0:
            loss_fn = lambda weights: float(tf.reduce_sum(tf.square(weights[0])))  # noqa: E731
            a = on_device.evaluate(loss_fn, [variable])
            b = on_host.evaluate(loss_fn, [variable.numpy()])
            np.testing.assert_allclose(a.weights[0], b.weights[0], rtol=1e-12)
            assert a.length == b.length


@pytest.mark.parametrize("on_device", [False, True])
def test_state_goes_through_a_copy(on_device):
    rng = np.random.default_rng(1)
    iterates = rng.normal(size=40) + 20.0 / np.arange(1, 41)
    one = TwoTailedAverage()
    expected = run(one, iterates, 2)
    first = TwoTailedAverage()
    found = run(first, iterates[:20], 2)
    second = TwoTailedAverage()
    second.set_state(
        json.loads(json.dumps(first.get_state(), default=np.ndarray.tolist)), on_device
    )
    found += run(second, iterates[20:], 2)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="`patience` must be an integer >= 1"):
        TwoTailedAverage(0)
    with pytest.raises(ValueError, match="`reset` must be one of switch, both"):
        TwoTailedAverage(reset="none")
    with pytest.raises(ValueError, match="no `update` since"):
        TwoTailedAverage().evaluate(square, [np.zeros(1)])
    average = TwoTailedAverage()
    average.update([np.zeros(2)])
    with pytest.raises(ValueError, match="of other shapes"):
        average.update([np.zeros(3)])
