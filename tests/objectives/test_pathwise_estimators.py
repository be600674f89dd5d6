"""Pathwise estimators of continuous latents: exact by quadrature."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.objectives.gradient_estimators import cotangents
from tests.references import monte_carlo_reference as reference

_OPTIONS = {"alpha": reference.ALPHA, "lambda_": reference.LAMBDA}
_OBJECTIVES = ("iwae", "alpha_iwae", "u_hat", "kl", "renyi", "power")
# p(z) = N(0, 1), p(x|z) = N(x; a sin z + z / 2, 1), q(z|x) = N(m, s^2).
_X, _AMPLITUDE, _NOISE = 0.9, 0.8, 1.0
_Q = np.array([0.4, -0.2])


def _normal(value, mean, log_scale):
    z = (value - mean) * tf.exp(-log_scale)
    return -0.5 * z**2 - log_scale - 0.5 * np.log(2 * np.pi)


def _log_likelihood(z, amplitude):
    mean = amplitude * tf.sin(z) + 0.5 * z
    return _normal(tf.constant(_X, tf.float64), mean, tf.constant(np.log(_NOISE)))


def _nodes(num_samples, size=150):
    """Standard normal noise `[K, size^K]` and weights of Gauss-Hermite quadrature."""
    points, weights = np.polynomial.hermite_e.hermegauss(size)
    weights = weights / weights.sum()
    grid = np.meshgrid(*[points] * num_samples, indexing="ij")
    total = np.prod(np.meshgrid(*[weights] * num_samples, indexing="ij"), axis=0)
    return tf.constant(np.array([g.ravel() for g in grid])), total.ravel()


def _path_gradients(noise, q, log_likelihood, log_prior, **options):
    """Gradients by mean and log-scale of q `[2, N]`, put together from the factors."""
    q = tf.constant(q)
    parameters = tf.repeat(q[:, None], noise.shape[1], axis=1)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(parameters)
        z = parameters[0] + tf.exp(parameters[1]) * noise
        held = tf.stop_gradient(parameters)
        logs = [log_likelihood(z), log_prior(z), _normal(z, held[0], held[1])]
        score = _normal(tf.stop_gradient(z), parameters[0], parameters[1])
    found = cotangents(*logs, **options)
    gradient = tf.zeros_like(parameters)
    for target, factor in (
        (logs[0], found.path_log_p_x_given_z),
        (logs[1], found.path_log_p_z),
        (logs[2], found.path_log_q_z),
        (score, found.score),
    ):
        if factor is not None:
            gradient += tape.gradient(target, parameters, output_gradients=factor)
    return gradient.numpy()


def _prior(z):
    return _normal(z, tf.constant(0.0, tf.float64), tf.constant(0.0, tf.float64))


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        *({"objective": o} for o in _OBJECTIVES),
        {"objective": "renyi", "alpha": 1.0},
        {"objective": "renyi", "alpha": 4.0},
        {"objective": "kl", "num_samples": (2, 1)},
        {"objective": "renyi", "num_samples": (1, 2), "grouping": "terms"},
    ],
)
@pytest.mark.parametrize("num_samples", [1, 2])
def test_pathwise_estimators_are_unbiased(options, num_samples):
    if max(options.get("num_samples", (1,))) > num_samples:
        pytest.skip("more samples asked for than there are")
    noise, weights = _nodes(num_samples)
    options = {**_OPTIONS, **options}

    def log_likelihood(z):
        return _log_likelihood(z, _AMPLITUDE)

    def mean(estimator):
        found = _path_gradients(
            noise, _Q, log_likelihood, _prior, estimator=estimator, **options
        )
        return found @ weights

    def expectation(q):
        z = q[0] + tf.exp(q[1]) * noise
        logs = (log_likelihood(z), _prior(z), _normal(z, *map(tf.constant, q)))
        value = cotangents(*logs, estimator="dreg", **options).objective
        return value.numpy() @ weights

    step = 1e-5
    expected = [
        (expectation(_Q + step * e) - expectation(_Q - step * e)) / (2 * step)
        for e in np.eye(2)
    ]
    np.testing.assert_allclose(mean("reparameterised"), expected, atol=1e-7)
    np.testing.assert_allclose(mean("dreg"), expected, atol=1e-5)
    if num_samples == 1:
        np.testing.assert_allclose(mean("stl"), expected, atol=1e-5)
    else:
        assert np.abs(mean("stl") - expected).max() > 1e-3


def test_the_second_term_of_dreg_for_u_counts():
    """Without 2 (l - U) the estimate would be biased."""
    noise, _ = _nodes(2, 9)
    options = {"objective": "u_hat", "estimator": "dreg"}

    def log_likelihood(z):
        return _log_likelihood(z, _AMPLITUDE)

    z = _Q[0] + np.exp(_Q[1]) * noise
    logs = [log_likelihood(z), _prior(z), _normal(z, *map(tf.constant, _Q))]
    found = cotangents(*logs, **options)
    w = tf.nn.softmax(logs[0] + logs[1] - logs[2], axis=0)
    centred = logs[0] - tf.reduce_sum(w * logs[0], axis=0)
    np.testing.assert_allclose(found.path_log_p_z, 2 * w**2 * centred, atol=1e-12)
    np.testing.assert_allclose(
        found.path_log_p_x_given_z, w**2 * (2 * centred + 1), atol=1e-12
    )


# p(z) = N(0, 1), p(x|z) = N(x; z, s^2): posteriors are known.
def _linear(z):
    return _normal(tf.constant(_X, tf.float64), z, tf.constant(np.log(_NOISE)))


def _tilted_posterior(alpha):
    """Mean and log-scale of q proportional to p(x|z)^alpha p(z)."""
    precision = 1 + alpha / _NOISE**2
    return np.array([alpha * _X / _NOISE**2 / precision, -0.5 * np.log(precision)])


@pytest.mark.parametrize("estimator", ["stl", "dreg"])
def test_zero_variance_at_the_optimal_proposal(rng, estimator):
    noise = tf.constant(rng.normal(size=(4, 50)))
    alpha = 2.5

    def gradients(objective, q, **options):
        return _path_gradients(
            noise, q, _linear, _prior, objective=objective, **options
        )

    own, tilted = _tilted_posterior(1.0), _tilted_posterior(alpha)
    zero = gradients("iwae", own, estimator=estimator)
    np.testing.assert_allclose(zero, 0, atol=1e-12)
    for objective in ("alpha_iwae", "power"):
        zero = gradients(objective, tilted, estimator=estimator, alpha=alpha)
        np.testing.assert_allclose(zero, 0, atol=1e-12)
    # U has no such proposal, and what contains it has none.
    for objective in ("u_hat", "kl"):
        found = gradients(objective, own, estimator=estimator, lambda_=0.3)
        assert np.abs(found).max() > 1e-2
    # The score is what is left out: its variance is not zero.
    whole = gradients("iwae", own, estimator="reparameterised")
    assert whole.var(axis=1).min() > 1e-3


@pytest.mark.parametrize("objective", ["iwae", "power", "kl", "renyi"])
def test_variances_near_the_optimum(rng, objective):
    noise = tf.constant(rng.normal(size=(8, 4000)))
    q = 0.05 + _tilted_posterior(1.5 if objective == "power" else 1.0)
    variances = {
        estimator: _path_gradients(
            noise,
            q,
            _linear,
            _prior,
            objective=objective,
            estimator=estimator,
            alpha=1.5,
            lambda_=0.1,
        ).var(axis=1)
        for estimator in ("reparameterised", "dreg")
    }
    assert np.all(variances["dreg"] < variances["reparameterised"])
