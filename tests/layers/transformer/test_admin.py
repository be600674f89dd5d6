"""Weights of residual connections: the oracle, and variances that come out as said."""

from __future__ import annotations

import numpy as np
import pytest

from rlm_tf.layers import admin_profile, admin_scale
from tests.references.transformers_reference import ORACLE

_CASE = ORACLE["admin"]


def test_scales_of_the_oracle():
    for number, omega in _CASE["log_rule"].items():
        assert admin_scale(int(number)) == pytest.approx(omega, abs=1e-14)
    assert admin_scale(24, rule="one") == pytest.approx(24**0.5)
    assert admin_scale(24, rule="linear") == 1.0


def test_profile_of_the_oracle():
    example = _CASE["profile_example"]
    found = admin_profile(example["var_f"])
    np.testing.assert_allclose(found, example["omega"], rtol=1e-14)
    assert admin_profile([]).shape == (0,)


def test_a_profiled_network_adds_as_much_as_was_measured():
    """The variance of omega_i x_(i-1) + f_i is omega_(i+1)^2."""
    rng = np.random.default_rng(0)
    var_f = [0.25, 0.5, 0.1, 0.3]
    omegas = [*admin_profile(var_f), np.sqrt(1 + sum(var_f))]
    x = rng.normal(size=400_000)
    for place, variance in enumerate(var_f):
        summed = omegas[place] * x + rng.normal(scale=variance**0.5, size=len(x))
        assert np.var(summed) == pytest.approx(omegas[place + 1] ** 2, rel=0.01)
        x = (summed - summed.mean()) / summed.std()


def test_mistakes():
    with pytest.raises(ValueError, match="`num_residuals` must be an integer >= 1"):
        admin_scale(0)
    with pytest.raises(ValueError, match="`rule` must be one of log, one, linear"):
        admin_scale(2, rule="none")
    with pytest.raises(ValueError, match="`var_f` must be a vector, found shape"):
        admin_profile([[1.0]])
    with pytest.raises(ValueError, match="`var_f` must be finite and at least 0"):
        admin_profile([-1.0])
