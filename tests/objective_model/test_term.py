"""Coefficients, ratios and schedules."""

from __future__ import annotations

import keras
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from rlm_tf.models import coefficient_from_ratio, ratio_from_coefficient
from rlm_tf.objective_model.term import coefficient_at


def test_ratios_of_the_paper():
    """Appendix D.1: `r = lambda / (1 + lambda)`; 0.2 and 0.1 stand for 1/4 and 1/9."""
    assert coefficient_from_ratio(0.2) == pytest.approx(0.25)
    assert coefficient_from_ratio(0.1) == pytest.approx(1 / 9)
    assert ratio_from_coefficient(0.25) == pytest.approx(0.2)


@given(st.floats(0.0, 0.999))
def test_ratio_and_coefficient_invert_each_other(ratio):
    assert ratio_from_coefficient(coefficient_from_ratio(ratio)) == pytest.approx(ratio)


@pytest.mark.parametrize("ratio", [-0.1, 1.0, 2.0])
def test_impossible_ratios_are_refused(ratio):
    with pytest.raises(ValueError, match=r"`ratio` must lie in \[0, 1\)"):
        coefficient_from_ratio(ratio)


def test_negative_coefficients_are_refused():
    with pytest.raises(ValueError, match="`coefficient` must not be negative"):
        ratio_from_coefficient(-0.5)


def test_schedules_are_read_at_the_step():
    schedule = keras.optimizers.schedules.ExponentialDecay(0.4, 10, 0.5)
    assert float(coefficient_at(schedule, tf.constant(10))) == pytest.approx(0.2)
    assert coefficient_at(0.3, tf.constant(10)) == 0.3
