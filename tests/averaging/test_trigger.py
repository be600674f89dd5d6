"""Rules of the non-monotonic trigger, as a function and in the average."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf import averaging
from rlm_tf.averaging import (
    AveragingBegins,
    TriggeredAverage,
    WeightAveraging,
    non_monotonic_trigger,
)
from rlm_tf.averaging.trigger import RULES
from tests.references.bmi_reference import ORACLE

_CASE = ORACLE["trigger"]


@pytest.mark.parametrize("rule", RULES)
def test_epochs_of_the_oracle(rule):
    for patience, expected in _CASE[rule].items():
        found = non_monotonic_trigger(_CASE["losses"], int(patience), rule=rule)
        assert found == expected


def test_steps_and_mean_of_the_oracle():
    """Steps in proportion to the window, and the mean of all iterates."""
    case = ORACLE["asgd"]
    theta = tf.Variable([case["start"]], dtype=tf.float64)
    average = averaging.TailAverage(1)
    iterates = []
    for gradient, length in zip(case["gradients"], case["lengths"], strict=True):
        factor = length / case["base_length"]
        theta.assign_sub([case["learning_rate"] * factor * gradient])
        iterates.append(theta.numpy())
        average.update([theta.numpy()])
    np.testing.assert_allclose(np.ravel(iterates), case["iterates"], rtol=1e-12)
    found = average.evaluate(lambda w: float(w[0][0]), [theta.numpy()])
    assert found.loss == pytest.approx(case["mean_of_all"])
    assert found.length == len(iterates)


def test_a_loss_that_always_falls_triggers_nothing():
    falling = np.linspace(5, 4, 30)
    for rule in RULES:
        assert non_monotonic_trigger(falling, 1, rule=rule) is None
    assert non_monotonic_trigger([], 1) is None


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("patience", [2, 5])
def test_the_average_begins_where_the_rule_says(rule, patience):
    """After half of the evaluations its state goes on in another one."""
    losses = _CASE["losses"]
    average = TriggeredAverage(patience, rule=rule)
    lengths = []
    for number, loss in enumerate(losses):
        if number == 6:
            state, average = average.get_state(), TriggeredAverage(patience, rule=rule)
            average.set_state(state)
        theta = np.array([float(number)])
        average.update([theta])
        lengths.append(average.evaluate(lambda w, loss=loss: loss, [theta]).length)
    epoch = _CASE[rule][str(patience)]
    expected = [max(1, number - epoch) for number in range(1, len(losses) + 1)]
    assert lengths == expected
    assert average.start_step == epoch + 1


@pytest.mark.parametrize("patience", [1, 4, 5, 6])
def test_the_stale_rule_is_that_of_the_average(patience):
    """On traces that rise at first, too."""
    for losses in np.random.default_rng(patience).normal(size=(40, 12)):
        average = TriggeredAverage(patience, rule="stale")
        found = None
        for number, loss in enumerate(losses, 1):
            average.update([np.zeros(1)])
            average.evaluate(lambda w, loss=loss: loss, [np.zeros(1)])
            if found is None and average.start_step < np.inf:
                found = number
        assert non_monotonic_trigger(losses, patience, rule="stale") == found


def test_the_trigger_of_a_phase_that_begins_with_averaging():
    average = TriggeredAverage(1, latest=5, rule="released")
    callback = WeightAveraging(average, lambda model: 0.0, monitor="loss")
    trigger = AveragingBegins(callback)
    found = []
    for step in range(1, 8):
        average.update([np.zeros(1)])
        found.append(trigger.after_epoch(step, {}, None))
    # Averaging of the fifth step begins after the fourth.
    assert found == [False] * 3 + [True] * 4
    with pytest.raises(ValueError, match="must have a beginning, such as Triggered"):
        AveragingBegins(
            WeightAveraging(averaging.TwoTailedAverage(), lambda model: 0.0)
        )


def test_mistakes():
    with pytest.raises(ValueError, match="`rule` must be one of released, published"):
        averaging.TriggeredAverage(3, rule="early")
    with pytest.raises(ValueError, match="`patience` must be an integer >= 1"):
        non_monotonic_trigger([1.0], 0)
