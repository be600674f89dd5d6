"""Sums of weights: exact after many steps, in every precision, without aliases."""

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf import averaging
from rlm_tf.averaging.weight_sum import WeightSum


def _mean_of(total, values, on_device):
    for value in values:
        total.add([tf.constant(value) if on_device else value])
    return np.array(total.mean()[0], np.float64)


@pytest.mark.parametrize(("on_device", "steps"), [(False, 100_000), (True, 3000)])
@pytest.mark.parametrize("noise", [0.0, 1e-4])
def test_errors_do_not_pile_up(on_device, steps, noise):
    rng = np.random.default_rng(1)
    values = (0.1 + noise * rng.normal(size=(steps, 4))).astype(np.float32)
    expected = values.mean(axis=0, dtype=np.float64)
    found = _mean_of(WeightSum(), values, on_device)
    # A plain sum is wrong by 1e-3 here.
    np.testing.assert_allclose(found, expected, rtol=(256 + steps / 256) * 2.0**-24)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("on_device", [True, False])
def test_half_precision_is_summed_in_single(dtype, on_device):
    value = tf.cast([0.5], dtype)
    average = averaging.TailAverage(1)
    exponential = averaging.ExponentialAverage(0.999)
    for _ in range(2000):
        weights = [value if on_device else value.numpy()]
        average.update(weights)
        exponential.update(weights)
    for each in (average, exponential):
        found = each.proposal([value])[0][0]
        assert np.array(found).dtype == np.float32
        np.testing.assert_allclose(found, [0.5], rtol=1e-5)


def test_joined_sums():
    rng = np.random.default_rng(2)
    values = rng.normal(size=(700, 3))
    first, second = WeightSum(), WeightSum()
    for value in values[:300]:
        first.add([value])
    for value in values[300:]:
        second.add([value])
    first.join(second)
    first.join(WeightSum())
    assert first.count == 700
    np.testing.assert_allclose(first.mean()[0], values.mean(0))
    first.add([values[0]])
    np.testing.assert_allclose(first.sums()[0], values.sum(0) + values[0])


def test_state_goes_on_with_the_same_bits():
    values = np.random.default_rng(3).normal(size=(600, 3)).astype(np.float32)
    whole, first, second = WeightSum(), WeightSum(), WeightSum()
    for value in values:
        whole.add([value])
    for value in values[:400]:
        first.add([value])
    second.set_state(first.get_state())
    for value in values[400:]:
        first.add([value])
        second.add([value])
    np.testing.assert_array_equal(second.mean()[0], whole.mean()[0])
    assert second.count == 600


def test_what_is_returned_belongs_to_the_caller():
    average = averaging.TwoTailedAverage()
    for theta in (4.0, 3.0, 2.0):
        average.update([np.array([theta])])
        result = average.evaluate(lambda w: float(w[0][0]) ** 2, [np.array([theta])])
        expected = average.proposal([np.array([theta])])[0][0].copy()
        result.weights[0][:] = 100.0
    np.testing.assert_array_equal(average.proposal([])[0][0], expected)


@pytest.mark.parametrize(
    "average", [averaging.TwoTailedAverage(), averaging.TriggeredAverage(1)]
)
def test_a_loss_may_write_into_the_weights(average):
    """The natural loss of a model puts what it gets into the model's variables."""
    variable = tf.Variable([0.0])

    def loss_fn(weights):
        variable.assign(weights[0])
        return float(variable[0]) ** 2

    for theta in (1.0, 3.0, 2.0):
        variable.assign([theta])
        average.update([variable])
        loss, weights, _ = average.evaluate(loss_fn, [variable])
        assert float(weights[0][0]) ** 2 == loss


def test_a_loss_that_fails_can_be_asked_again():
    average, other = averaging.TwoTailedAverage(), averaging.TwoTailedAverage()
    calls = []

    def fails_once(weights):
        calls.append(1)
        if len(calls) == 2:
            raise OSError("disk full")
        return float(weights[0][0])

    for theta in (3.0, 2.0):
        for each in (average, other):
            each.update([np.array([theta])])
    weights = [np.array([2.0])]
    with pytest.raises(OSError, match="disk full"):
        average.evaluate(fails_once, weights)
    result = average.evaluate(fails_once, weights)
    assert result == other.evaluate(lambda w: float(w[0][0]), weights)
    assert average.event == other.event


@pytest.mark.parametrize(
    "average",
    [
        averaging.TailAverage(1),
        averaging.PolyakAverage(),
        averaging.ExponentialAverage(0.9),
        averaging.ProportionalTailAverage(0.5),
        averaging.TwoTailedAverage(),
    ],
)
def test_before_any_update_the_iterate_is_proposed(average):
    weights = [np.array([2.0])]
    assert average.proposal(weights) == (weights, 1)
    average.update([np.array([np.nan])])
    assert average.evaluate(lambda w: float(w[0][0]), weights).loss in (np.inf, 2.0)


def test_plain_numbers_are_arrays():
    average = averaging.PolyakAverage()
    average.update([1])
    average.update([2.0])
    assert average.proposal([0.0])[0] == [1.5]
    with pytest.raises(ValueError, match=r"expected \[\(\)\], found \[\(2,\)\]"):
        average.update([[1.0, 2.0]])
