"""The fitted law against laws that are known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_tf.evaluation import fit_scaling_law

AMOUNTS = 929_589 / np.array([16, 8, 4, 2, 1])


@given(st.floats(1.0, 4.0), st.floats(0.5, 3.0), st.floats(0.15, 1.0))
@settings(max_examples=30, deadline=None)
def test_a_known_law_is_recovered(irreducible, share, exponent):
    amplitude = share * AMOUNTS[0] ** exponent
    nats = irreducible + amplitude / AMOUNTS**exponent
    law = fit_scaling_law(AMOUNTS, nats)
    assert law.residual < 1e-6
    np.testing.assert_allclose(law.loss(AMOUNTS), nats, atol=1e-5)
    np.testing.assert_allclose(law.exponent, exponent, rtol=1e-2)
    np.testing.assert_allclose(law.irreducible, irreducible, atol=0.05)


def test_equivalent_tokens_inverts_the_law():
    law = fit_scaling_law(AMOUNTS, 4.0 + 300 / AMOUNTS**0.5)
    np.testing.assert_allclose(
        law.equivalent_tokens(float(law.loss(150_000.0))), 150_000.0, rtol=1e-9
    )
    assert law.equivalent_tokens(law.irreducible) == np.inf


def test_noise_shows_in_the_residual(rng):
    nats = 4.0 + 300 / AMOUNTS**0.5 + rng.normal(size=5) * 0.02
    assert 0.002 < fit_scaling_law(AMOUNTS, nats).residual < 0.06


@pytest.mark.parametrize(
    ("tokens", "nats", "message"),
    [
        ([1.0, 2.0, 2.0], [3.0, 2.0, 2.0], "at least three different amounts"),
        ([1.0, 2.0, 3.0], [3.0, 2.0], "vectors of one length"),
        ([1.0, 2.0, 4.0], [3.0, np.nan, 1.0], "positive numbers"),
        ([1.0, 2.0, 4.0], [3.0, 4.0, 5.0], "does not fall"),
    ],
)
def test_impossible_points_are_refused(tokens, nats, message):
    with pytest.raises(ValueError, match=message):
        fit_scaling_law(np.array(tokens), np.array(nats))
