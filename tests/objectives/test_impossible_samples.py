"""Objectives and estimators where p(x|z) is zero for some samples, or for all."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from rlm_tf.objectives import monte_carlo
from rlm_tf.objectives.gradient_estimators import cotangents

_IMPOSSIBLE = -np.inf
_OPTIONS = {
    "iwae": {},
    "alpha_iwae": {"alpha": 2.0},
    "u_hat": {},
    "kl": {"lambda_": 0.3},
    "renyi": {"lambda_": 0.3, "alpha": 2.0},
    "power": {"alpha": 2.0},
}


def _factors(log_likelihood, name, estimator="vimco", **options):
    values = np.array(log_likelihood, np.float64)
    zeros = np.zeros_like(values)
    options = {"objective": name, "estimator": estimator, **_OPTIONS[name], **options}
    return cotangents(values, zeros, zeros, **options)


@pytest.mark.parametrize("name", _OPTIONS)
@pytest.mark.parametrize("estimator", ["vimco", "reinforce", "dreg", "stl"])
def test_an_impossible_sample_is_an_improbable_one(name, estimator):
    """-inf is the limit of large negative numbers, but for VIMCO's own baselines."""
    options = {"baseline": "leave_one_out"} if estimator == "vimco" else {}
    found = _factors([-1.0, _IMPOSSIBLE, -2.0], name, estimator, **options)
    expected = _factors([-1.0, -400.0, -2.0], name, estimator, **options)
    assert np.isfinite(expected.objective)
    np.testing.assert_allclose(found.objective, expected.objective)
    for field in ("log_p_x_given_z", "log_p_z", "path_log_p_z", "score"):
        a, b = getattr(found, field), getattr(expected, field)
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_allclose(a, b, atol=1e-12, err_msg=field)


@pytest.mark.slow
@pytest.mark.parametrize("name", _OPTIONS)
@pytest.mark.parametrize("baseline", ["swap_in", "leave_one_out"])
def test_baselines_know_nothing_of_their_sample(name, baseline):
    """What is subtracted from O is the same whatever the sample itself says."""
    number = 2 if baseline == "leave_one_out" else 3
    for others in itertools.product([-1.0, -2.5, _IMPOSSIBLE], repeat=number - 1):
        baselines = []
        for own in (-0.5, -3.0):
            values = [own, *others]
            vimco = _factors(values, name, baseline=baseline)
            plain = _factors(values, name, "reinforce")
            baselines.append((plain.score - vimco.score).numpy()[0])
        assert np.isfinite(baselines).all()
        np.testing.assert_allclose(*baselines, atol=1e-12)


@pytest.mark.parametrize("function", ["iwae", "alpha_iwae", "kl", "renyi", "power"])
def test_nothing_but_impossible_samples_is_infinitely_bad(function):
    name = function if function.endswith("iwae") else f"{function}_objective"
    values = np.full([3, 2], _IMPOSSIBLE)
    values[1, 1] = -1.0
    loss = getattr(monte_carlo, name)(
        values, np.zeros([3, 2]), np.zeros([3, 2]), **_OPTIONS[function]
    ).loss
    assert loss[0] == np.inf and np.isfinite(loss[1])


def test_u_of_impossible_samples():
    zeros = np.zeros([2, 1])
    found = monte_carlo.self_normalised_log_likelihood(
        zeros + _IMPOSSIBLE, zeros, zeros
    )
    assert found.loss[0] == np.inf


@pytest.mark.parametrize("name", _OPTIONS)
@pytest.mark.parametrize(
    "estimator", ["reparameterised", "stl", "dreg", "reinforce", "vimco"]
)
def test_an_example_without_a_possible_sample_moves_nothing(name, estimator):
    """It is infinitely bad, and leaves the gradient of its batch as it is."""
    values = np.array([[-1.0, _IMPOSSIBLE], [-2.0, _IMPOSSIBLE], [-0.5, _IMPOSSIBLE]])
    found = _factors(values, name, estimator)
    alone = _factors(values[:, :1], name, estimator)
    np.testing.assert_array_equal(np.isinf(found.objective), [False, True])
    for own, other in zip(found[:6], alone[:6], strict=True):
        assert (own is None) == (other is None)
        if own is not None:
            np.testing.assert_allclose(own[:, :1], other, rtol=1e-12)
            np.testing.assert_allclose(own[:, 1], 0, atol=1e-12)
    np.testing.assert_array_equal(found.extra.weights[:, 1], 0)


@pytest.mark.parametrize("grouping", ["difference", "terms"])
@pytest.mark.parametrize("alpha", [1.001, 2.0])
@pytest.mark.parametrize("first", [_IMPOSSIBLE, -1.0])
def test_impossible_evidence_is_infinitely_bad_in_both_groupings(
    grouping, alpha, first
):
    """One sample of the evidence, three of the divergence."""
    values = np.array([[first], [-1.0], [-2.0]])
    options = {"lambda_": 0.3, "alpha": alpha, "grouping": grouping}
    found = _factors(values, "renyi", "dreg", num_samples=(1, 3), **options)
    assert found.objective[0] == _IMPOSSIBLE or first > _IMPOSSIBLE
    assert np.isfinite(found.objective[0]) == (first > _IMPOSSIBLE)
    for own in found[:5]:
        assert np.isfinite(own).all()


@pytest.mark.parametrize("name", _OPTIONS)
@pytest.mark.parametrize("others", [np.nan, _IMPOSSIBLE, -1.0])
def test_what_is_no_number_makes_no_objective(name, others):
    values = np.array([[np.nan, -1.0], [others, -1.0], [others, -1.0]])
    found = _factors(values, name, "reinforce")
    np.testing.assert_array_equal(np.isnan(found.objective), [True, False])
    np.testing.assert_array_equal(np.isnan(found.score[0]), [True, False])
