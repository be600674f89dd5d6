"""Monte Carlo objectives at their limits: precision, propositions, many samples."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.objectives import monte_carlo
from rlm_tf.objectives.posterior_divergence import posterior_divergence
from tests.references import monte_carlo_reference as reference

ORACLE = reference.ORACLE
_ALPHA = reference.ALPHA


def _samples(rng, shape):
    return [rng.normal(size=shape) * scale - 1.0 for scale in (2.0, 1.0, 1.0)]


# === Stability ===


@pytest.mark.parametrize("excess", [-1e-3, -1e-6, 0.0, 1e-6, 1e-3])
def test_near_one_renyi_is_kl_and_keeps_its_digits(rng, excess):
    likelihood, prior, posterior = _samples(rng, (16, 200))
    likelihood = likelihood * 3 - 150.0
    samples = [s.astype(np.float32) for s in (likelihood, prior, posterior)]
    kept = [tf.constant(s.astype(np.float64)) for s in samples]
    values, gradients = [], []
    for inputs in (list(map(tf.constant, samples)), kept):
        alpha = tf.constant(1.0 + excess, inputs[0].dtype)
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            loss = monte_carlo.renyi_objective(*inputs, alpha=alpha, lambda_=1.0).loss
        values.append(loss.numpy())
        gradients.append([g.numpy() for g in tape.gradient(loss, inputs)])
    exact = monte_carlo.kl_objective(*kept, lambda_=1.0).loss.numpy()
    np.testing.assert_allclose(values[0], values[1], atol=2e-4)
    assert np.abs(values[1] - exact).max() <= 200 * abs(excess)
    for single, double in zip(*gradients, strict=True):
        np.testing.assert_allclose(single, double, atol=2e-4)


@pytest.mark.parametrize("counts", [(16, 1), (1, 16), (16, 15)])
@pytest.mark.parametrize("alpha", [0.999, 1.001, 16.0])
@pytest.mark.parametrize("level", [-150.0, -600.0])
def test_grouped_by_terms_nothing_is_lost_but_the_last_digit(rng, counts, alpha, level):
    """Single precision has 24 bits of what the objective is, here up to 1e4."""
    likelihood, prior, posterior = _samples(rng, (16, 200))
    samples = [
        part.astype(np.float32) for part in (likelihood * 3 + level, prior, posterior)
    ]
    options = {"lambda_": 0.3, "num_samples": counts, "grouping": "terms"}

    def loss(dtype, alpha):
        parts = [part.astype(dtype) for part in samples]
        return monte_carlo.renyi_objective(*parts, alpha=alpha, **options).loss

    expected = loss(np.float64, alpha)
    single = loss(np.float32, alpha)
    np.testing.assert_allclose(single, expected, rtol=5e-7, atol=3e-4)
    rounded = np.float32(alpha)
    expected = loss(np.float64, float(rounded))
    np.testing.assert_allclose(
        loss(np.float32, rounded), expected, rtol=5e-7, atol=3e-4
    )


@pytest.mark.parametrize("alpha", [0.05, 0.86, 1.5, 16.0])
def test_large_alpha_by_the_definition(rng, alpha):
    likelihood, prior, posterior = _samples(rng, (8, 100))
    likelihood = likelihood * 10 - 80.0
    function = monte_carlo.renyi_objective
    loss = function(likelihood, prior, posterior, alpha=alpha, lambda_=0.3).loss
    a = likelihood + prior - posterior
    tilted = a + (alpha - 1) * likelihood
    top, high = a.max(axis=0), tilted.max(axis=0)
    s = top + np.log(np.mean(np.exp(a - top), axis=0))
    s_alpha = high + np.log(np.mean(np.exp(tilted - high), axis=0))
    expected = s + 0.3 / (alpha - 1) * (s_alpha - alpha * s)
    np.testing.assert_allclose(-loss, expected, rtol=1e-10)
    single = [tf.constant(v, tf.float32) for v in (likelihood, prior, posterior)]
    with tf.GradientTape() as tape:
        tape.watch(single)
        loss = function(*single, alpha=alpha, lambda_=0.3).loss
    np.testing.assert_allclose(-loss, expected, rtol=1e-4)
    assert all(np.isfinite(g).all() for g in tape.gradient(loss, single))


@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0])
def test_samples_that_cannot_have_said_x(alpha):
    """p(x|z) = 0 has no weight, and is no number in no gradient."""
    samples = [tf.constant([[v], [w]]) for v, w in ((-1.0, -np.inf), (0.0, 0.0))]
    samples.append(tf.constant([[-0.5], [-0.5]]))
    with tf.GradientTape() as tape:
        tape.watch(samples)
        found = monte_carlo.renyi_objective(*samples, alpha=alpha, lambda_=0.5)
    evidence = -1.0 + 0.5 - np.log(2)
    tilted = -alpha + 0.5 - np.log(2)
    rate = (tilted - alpha * evidence) / (alpha - 1) if alpha != 1 else -1.0 - evidence
    assert -found.loss.numpy() == pytest.approx(evidence + 0.5 * rate, rel=1e-5)
    for gradient in tape.gradient(found.loss, samples):
        assert np.isfinite(gradient).all() and gradient[1] == 0


# === Propositions ===


def _exact(x: int, alpha: float) -> tuple[float, float, float]:
    """ln p(x), ln p^alpha(x) and D_alpha(p(z|x) || p(z)) of the tiny model."""
    prior, likelihood = reference.PRIOR, reference.LIKELIHOOD[:, x]
    p, tilted = prior @ likelihood, prior @ likelihood**alpha
    posterior = prior * likelihood / p
    if alpha == 1.0:
        return np.log(p), np.log(p), posterior @ np.log(posterior / prior)
    divergence = np.log(prior @ (posterior / prior) ** alpha) / (alpha - 1)
    return np.log(p), np.log(tilted), divergence


def _estimates(x: int, alpha: float) -> tuple[float, float, float]:
    """The same by the objectives, with proposals for which one sample is exact."""

    def samples(power):
        """All latents, one sample each: q is proportional to p(x|z)^power p(z)."""
        joint = reference.PRIOR * reference.LIKELIHOOD[:, x] ** power
        q = joint / joint.sum()
        tables = (reference.LIKELIHOOD[:, x], reference.PRIOR, q)
        return [np.log(table)[np.newaxis] for table in tables]

    evidence = -monte_carlo.iwae(*samples(1.0)).loss.numpy()
    tilted = -monte_carlo.alpha_iwae(*samples(alpha), alpha=alpha).loss.numpy()
    np.testing.assert_allclose(np.ptp(evidence), 0, atol=1e-12)
    np.testing.assert_allclose(np.ptp(tilted), 0, atol=1e-12)
    # In the shares of p(z|x), latents as samples of their own: the estimate is exact.
    counts = np.round(10_000 * np.exp(samples(1.0)[2][0])).astype(int)
    repeated = [np.repeat(part[0], counts)[:, np.newaxis] for part in samples(1.0)]
    divergence = posterior_divergence(*repeated, alpha=alpha).numpy()[0]
    return evidence[0], tilted[0], divergence


@pytest.mark.parametrize("x", range(4))
def test_proposition_10_and_the_order_of_divergences(x):
    divergences = []
    for alpha in (0.5, 0.9, 1.0, 1.1, 1.5, 4.0):
        evidence, tilted, divergence = _estimates(x, alpha)
        divergences.append(divergence)
        if alpha > 1:
            # Strictly: no x is determined by its latents here.
            assert alpha * evidence < tilted < evidence
        gap = (alpha - 1) * divergence
        # Shares of the latents are rounded.
        assert tilted - alpha * evidence == pytest.approx(gap, abs=2e-3)
        exact = _exact(x, alpha)
        assert (evidence, tilted) == pytest.approx(exact[:2], abs=1e-12)
        assert divergence == pytest.approx(exact[2], abs=5e-4)
    assert np.all(np.diff(divergences) > 0)
    evidence, tilted, divergence = _exact(x, _ALPHA)
    oracle = ORACLE["per_x"][x]
    assert evidence == pytest.approx(oracle["ln_p_x"], abs=1e-12)
    assert tilted == pytest.approx(oracle["ln_p_alpha_x"], abs=1e-12)
    assert divergence == pytest.approx(oracle["renyi_alpha"], abs=1e-12)


def test_latents_that_determine_x_make_the_power_bound_tight():
    """p(x|z) is 0 or 1: p^alpha(x) = p(x)."""
    log_likelihood = np.array([[0.0], [0.0], [-np.inf]])
    prior = np.log([[0.5], [0.3], [0.2]])
    posterior = np.log([[0.4], [0.4], [0.2]])
    samples = (log_likelihood, prior, posterior)
    tight = monte_carlo.alpha_iwae(*samples, alpha=3.0).loss
    np.testing.assert_allclose(tight, monte_carlo.iwae(*samples).loss, rtol=1e-12)


def test_more_samples_come_closer(rng):
    """S is a lower bound that grows; U - S and D approach what they estimate."""
    x, count = 2, 20_000
    _, _, renyi = _exact(x, _ALPHA)
    expected = np.array([_exact(x, 1.0)[0], _exact(x, 1.0)[2], renyi])
    gaps = []
    for num_samples in (1, 4, 16, 64):
        latents = rng.choice(3, p=reference.q_probs(x), size=(num_samples, count))
        samples = reference.log_probs(latents, x)
        loss, extra = monte_carlo.iwae(*samples)
        rate = -monte_carlo.renyi_objective(*samples, alpha=_ALPHA, lambda_=1.0).loss
        found = [-loss, extra.kl_divergence, rate + loss]
        gaps.append(np.mean(found, axis=1) - expected)
    assert np.all(np.array(gaps)[:, 0] < 0)
    assert np.all(np.diff(np.array(gaps)[:, 0]) > 0)
    assert np.all(np.abs(gaps[2]) < 0.5 * np.abs(gaps[1]))
    assert np.all(np.abs(gaps[3]) < 0.5 * np.abs(gaps[2]))
    assert np.abs(gaps[-1]).max() < 0.01


def test_the_estimate_of_the_kl_may_be_too_low():
    """Proposition 9 (ii) says that it never is; q = p(z) is the counterexample."""
    expected = ORACLE["q_is_prior"]
    for num_samples in (1, 2, 3):
        latents, _ = reference.tuples(num_samples, 3)
        probs = np.prod(reference.PRIOR[latents], axis=0)
        likelihood, prior, _ = reference.log_probs(latents, 3)
        extra = monte_carlo.iwae(likelihood, prior, prior).extra
        found = np.sum(probs * extra.kl_divergence)
        assert found == pytest.approx(expected[f"E_KLest_{num_samples}"], abs=1e-9)
        assert found < expected["kl_post_prior"]
