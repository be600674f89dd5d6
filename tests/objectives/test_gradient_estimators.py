"""Gradient estimators: their factors at fixed samples, and mistakes."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.objectives import monte_carlo
from rlm_tf.objectives.gradient_estimators import cotangents
from tests.references import monte_carlo_reference as reference

_OBJECTIVES = ("iwae", "alpha_iwae", "u_hat", "kl", "renyi", "power")


# === Factors at fixed samples ===


@pytest.mark.parametrize(
    "options", [*({"objective": o} for o in _OBJECTIVES), *reference.ASYMMETRIC]
)
@pytest.mark.parametrize("alpha", [1.5, 0.7])
def test_factors_are_the_derivatives_of_the_objective(rng, options, alpha):
    """By autodiff of the definition, written down in other ways than ours."""
    inputs = [tf.constant(rng.normal(size=(3, 4))) for _ in range(3)]
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        value = _definition(*inputs, alpha=alpha, lambda_=0.3, **options)
    expected = tape.gradient(value, inputs)
    found = cotangents(
        *inputs, estimator="reparameterised", alpha=alpha, lambda_=0.3, **options
    )
    np.testing.assert_allclose(found.objective, value, rtol=1e-10)
    for field, gradient in (
        ("log_p_x_given_z", expected[0]),
        ("log_p_z", expected[1]),
        ("path_log_p_x_given_z", expected[0]),
        ("path_log_p_z", expected[1]),
        ("path_log_q_z", expected[2]),
        ("score", expected[2]),
    ):
        np.testing.assert_allclose(getattr(found, field), gradient, atol=1e-12)


def _definition(l, r, s, objective, alpha, lambda_, num_samples=None, grouping=""):  # noqa: E741
    """An objective from means of exponentials, (5.11) to (5.18)."""
    n, m = num_samples or (3, 3)

    def log_mean(power, count):
        ratios = tf.exp(power * l + r - s)[:count]
        return tf.math.log(tf.reduce_mean(ratios, axis=0))

    def u_hat(count):
        ratios = tf.exp(l + r - s)[:count]
        return tf.reduce_sum(ratios * l[:count], axis=0) / tf.reduce_sum(ratios, axis=0)

    if objective == "iwae":
        return log_mean(1.0, n)
    if objective == "u_hat":
        return u_hat(n)
    if objective in ("alpha_iwae", "power"):
        return log_mean(alpha, n) / (1.0 if objective == "alpha_iwae" else alpha)
    base = log_mean(1.0, n if grouping == "terms" else m)
    rest = log_mean(1.0, n) - base
    if objective == "kl":
        return rest + (1 - lambda_) * base + lambda_ * u_hat(m)
    rate = lambda_ / (alpha - 1)
    return rest + rate * log_mean(alpha, m) - (rate * alpha - 1) * base


@pytest.mark.parametrize("estimator", ["reparameterised", "dreg"])
def test_renyi_factors_tend_to_those_of_kl(rng, estimator):
    """At 1 exactly, near it without noise, in single precision as in double."""
    inputs = [rng.normal(size=(8, 50)) * 3 for _ in range(3)]
    kl = cotangents(*inputs, objective="kl", estimator=estimator, lambda_=0.4)
    for alpha, tolerance in ((1.0, 1e-14), (1 + 1e-7, 1e-5), (1 - 1e-3, 0.05)):
        renyi = cotangents(
            *inputs, objective="renyi", estimator=estimator, lambda_=0.4, alpha=alpha
        )
        single = cotangents(
            *[v.astype(np.float32) for v in inputs],
            objective="renyi",
            estimator=estimator,
            lambda_=0.4,
            alpha=tf.constant(alpha, tf.float32),
        )
        for own, limit, rounded in zip(renyi[:6], kl[:6], single[:6], strict=True):
            if own is None:
                assert limit is None and rounded is None
                continue
            np.testing.assert_allclose(own, limit, atol=tolerance)
            np.testing.assert_allclose(rounded, own, atol=2e-5)


@pytest.mark.parametrize("estimator", ["reparameterised", "dreg", "vimco"])
@pytest.mark.parametrize("alpha", [0.86, 0.999, 1.001, 2.0, 16.0])
def test_single_precision_keeps_its_digits_far_out(rng, estimator, alpha):
    """Also where w underflows and w' is one: the last example."""
    random = rng.normal(size=(3, 6, 40)) * np.logspace(0, 2.5, 40)
    inputs = [-np.abs(random[0]), random[1], random[2]]
    last = np.full((6, 1), -500.0)
    last[:2, 0] = -10.0, -30.0
    inputs = [
        np.concatenate([values, extra], axis=1).astype(np.float32)
        for values, extra in zip(
            inputs,
            (last, np.eye(6, 1) * -130.0, np.zeros((6, 1))),
            strict=True,
        )
    ]
    options = {"objective": "renyi", "lambda_": 1.0, "alpha": alpha}
    single, double = (
        cotangents(
            *(values.astype(dtype) for values in inputs), estimator=estimator, **options
        )
        for dtype in (np.float32, np.float64)
    )
    np.testing.assert_allclose(single.objective, double.objective, rtol=2e-5, atol=2e-5)
    fields = list(zip(single[:6], double[:6], strict=True))
    for own, exact in fields:
        assert (own is None) == (exact is None)
        if own is not None:
            np.testing.assert_allclose(own, exact, rtol=1e-4, atol=1e-4)
    # Naively, in double precision.
    likelihood, prior, proposal = (values.astype(np.float64) for values in inputs)
    ratio = prior - proposal
    evidence = np.logaddexp.reduce(likelihood + ratio) - np.log(6)
    tilted = np.logaddexp.reduce(alpha * likelihood + ratio) - np.log(6)
    expected = evidence + (tilted - alpha * evidence) / (alpha - 1)
    np.testing.assert_allclose(double.objective, expected, rtol=1e-7, atol=1e-7)


# === Mistakes ===


def test_mistakes_are_named(rng):
    inputs = rng.normal(size=(3, 2, 4))
    with pytest.raises(ValueError, match="`estimator` must be one of"):
        cotangents(*inputs, objective="kl", estimator="other")
    with pytest.raises(ValueError, match="`objective` must be"):
        cotangents(*inputs, objective="elbo", estimator="dreg")
    with pytest.raises(ValueError, match="VIMCO needs two samples"):
        cotangents(*inputs[:, :1], objective="kl", estimator="vimco")
    with pytest.raises(ValueError, match="`baseline` of"):
        cotangents(*inputs, objective="kl", estimator="vimco", baseline="other")
    with pytest.raises(ValueError, match="needs two samples in every term, found 1"):
        cotangents(
            *inputs,
            objective="kl",
            estimator="vimco",
            baseline="leave_one_out",
            num_samples=(2, 1),
        )
    with pytest.raises(ValueError, match="for the objectives kl and renyi"):
        cotangents(*inputs, objective="power", estimator="dreg", num_samples=(2, 1))
    found = cotangents(*inputs, objective="kl", estimator="dreg", lambda_=0.2)
    expected = monte_carlo.kl_objective(*inputs, lambda_=0.2).loss
    np.testing.assert_allclose(-found.objective, expected)
