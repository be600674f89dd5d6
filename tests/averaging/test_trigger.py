"""Rules of the non-monotonic trigger, as a function and in the average."""

from __future__ import annotations

import numpy as np
import pytest

from rlm_tf import averaging
from rlm_tf.averaging import TriggeredAverage, non_monotonic_trigger
from rlm_tf.averaging.trigger import RULES
from tests.references.bmi_reference import ORACLE

_CASE = ORACLE["trigger"]


@pytest.mark.parametrize("rule", RULES)
def test_epochs_of_the_oracle(rule):
    for patience, expected in _CASE[rule].items():
        found = non_monotonic_trigger(_CASE["losses"], int(patience), rule=rule)
        assert found == expected


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


def test_mistakes():
    with pytest.raises(ValueError, match="`rule` must be one of released, published"):
        averaging.TriggeredAverage(3, rule="early")
    with pytest.raises(ValueError, match="`patience` must be an integer >= 1"):
        non_monotonic_trigger([1.0], 0)
