"""Monte Carlo objectives: values against enumeration, stability, propositions."""

from __future__ import annotations

import json
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.objectives import monte_carlo
from rlm_tf.objectives.elbo import elbo
from rlm_tf.objectives.posterior_divergence import posterior_divergence
from tests.references import monte_carlo_reference as reference

ORACLE = json.loads(
    (
        pathlib.Path(__file__).parents[1] / "references" / "monte_carlo_oracle.json"
    ).read_text()
)
_ALPHA, _LAMBDA = reference.ALPHA, reference.LAMBDA
_OPTIONS = {
    "iwae": (monte_carlo.iwae, {}),
    "alpha_iwae": (monte_carlo.alpha_iwae, {"alpha": _ALPHA}),
    "u_hat": (monte_carlo.self_normalised_log_likelihood, {}),
    "kl": (monte_carlo.kl_objective, {"lambda_": _LAMBDA}),
    "renyi": (monte_carlo.renyi_objective, {"alpha": _ALPHA, "lambda_": _LAMBDA}),
    "power": (monte_carlo.power_objective, {"alpha": _ALPHA}),
}
_COLUMNS = {
    "iwae": "E_IWAE",
    "alpha_iwae": "E_IWAE_alpha",
    "u_hat": "E_U",
    "kl": "E_O_KL",
    "renyi": "E_O_Renyi",
    "power": "E_O_power",
}


def _samples(rng, shape=(5, 3, 2)):
    return [rng.normal(size=shape) * scale - 1.0 for scale in (2.0, 1.0, 1.0)]


# === Values ===


@pytest.mark.parametrize("name", _OPTIONS)
@pytest.mark.parametrize("num_samples", [1, 2, 3, 4])
@pytest.mark.parametrize("x", range(4))
def test_expectations_of_the_oracle(name, num_samples, x):
    latents, probs = reference.tuples(num_samples, x)
    function, options = _OPTIONS[name]
    loss, extra = function(*reference.log_probs(latents, x), **options)
    expected = ORACLE["per_x"][x]
    found = -np.sum(probs * loss)
    assert found == pytest.approx(expected[f"{_COLUMNS[name]}_{num_samples}"], abs=1e-9)
    divergence = np.sum(probs * extra.kl_divergence)
    assert divergence == pytest.approx(expected[f"E_KLest_{num_samples}"], abs=1e-9)
    representational = np.sum(probs * extra.representational_kl)
    assert representational == pytest.approx(expected["kl_q_prior"], abs=1e-12)
    if name in ("iwae", "u_hat"):
        variance = np.sum(probs * (loss + found) ** 2)
        column = f"Var_{_COLUMNS[name].removeprefix('E_')}_{num_samples}"
        assert variance == pytest.approx(expected[column], abs=1e-9)


@pytest.mark.parametrize("num_samples", [1, 2, 3, 4])
@pytest.mark.parametrize("x", range(4))
def test_divergences_of_the_oracle(num_samples, x):
    latents, probs = reference.tuples(num_samples, x)
    samples = reference.log_probs(latents, x)
    expected = ORACLE["per_x"][x]
    for alpha, name in ((1.0, "KLest"), (_ALPHA, "RenyiEst")):
        found = np.sum(probs * posterior_divergence(*samples, alpha=alpha))
        assert found == pytest.approx(expected[f"E_{name}_{num_samples}"], abs=1e-9)


def test_mutual_information_and_divergences_with_the_true_posterior_as_proposal():
    """Then every sample says the same S, whatever the number of samples."""
    total = 0.0
    for x in range(4):
        joint = reference.PRIOR * reference.LIKELIHOOD[:, x]
        posterior = joint / joint.sum()
        samples = [
            np.log(table)[:, np.newaxis]
            for table in (reference.LIKELIHOOD[:, x], reference.PRIOR, posterior)
        ]
        expected = ORACLE["per_x"][x]
        # All latents at once, one sample each: means over q are sums with its weights.
        one = [values[np.newaxis, :, 0] for values in samples]
        loss, extra = monte_carlo.iwae(*one)
        np.testing.assert_allclose(-loss, expected["ln_p_x"], rtol=1e-12)
        kl = np.sum(posterior * extra.kl_divergence)
        assert kl == pytest.approx(expected["kl_post_prior"], abs=1e-12)
        total += joint.sum() * kl
    assert total == pytest.approx(ORACLE["mutual_information"], abs=1e-12)


# === The ELBO ===


@pytest.mark.parametrize("x", range(4))
def test_elbo_of_the_oracle_is_the_evidence_less_the_divergence_of_q(x):
    expected = ORACLE["per_x"][x]
    latents, probs = reference.tuples(1, x)
    likelihood = reference.log_probs(latents, x)[0]
    loss = elbo(likelihood, np.full(3, expected["kl_q_prior"])).loss
    found = -np.sum(probs * loss)
    assert found == pytest.approx(expected["elbo"], abs=1e-12)
    gap = expected["ln_p_x"] - expected["kl_q_post"]
    assert found == pytest.approx(gap, abs=1e-12)


@pytest.mark.parametrize("name", _OPTIONS)
def test_objectives_of_the_elbo_are_those_of_one_sample(rng, name):
    """With ln(q/p) of the one sample in place of the KL, each is the ELBO's."""
    samples = _samples(rng, (1, 3, 2))
    function, options = _OPTIONS[name]
    expected = function(*samples, **options).loss
    ratio = (samples[2] - samples[1])[0]
    loss, weights = elbo(samples[0], ratio, objective=name, **options)
    np.testing.assert_allclose(loss, expected, rtol=1e-9)
    beta = {
        "iwae": 1.0,
        "alpha_iwae": 1 / _ALPHA,
        "u_hat": 0.0,
        "kl": 1 - _LAMBDA,
        "renyi": 1 - _LAMBDA,
        "power": 1 / _ALPHA,
    }[name]
    assert weights.divergence / weights.likelihood == pytest.approx(beta)
    single = elbo(samples[0].astype(np.float32), ratio, objective=name, **options).loss
    assert single.dtype == tf.float32


@pytest.mark.parametrize("name", _OPTIONS)
def test_value_by_the_definition_and_dtype(rng, name):
    samples = _samples(rng)
    function, options = _OPTIONS[name]
    loss, extra = function(*samples, **options)
    expected = reference.objective(name, *samples, _ALPHA, _LAMBDA)
    np.testing.assert_allclose(-loss, expected, rtol=1e-12)
    np.testing.assert_allclose(
        extra.log_evidence, reference.evidence(*samples), rtol=1e-12
    )
    np.testing.assert_allclose(tf.reduce_sum(extra.weights, axis=0), np.ones((3, 2)))
    single = function(*[s.astype(np.float32) for s in samples], **options)
    assert single.loss.dtype == tf.float32
    np.testing.assert_allclose(single.loss, loss, rtol=1e-5)


@pytest.mark.parametrize("name", ["kl", "renyi"])
@pytest.mark.parametrize("grouping", ["difference", "terms"])
@pytest.mark.parametrize("counts", [(5, 1), (1, 5), (3, 2), (5, 5)])
def test_asymmetric_counts(rng, name, grouping, counts):
    samples = _samples(rng)
    function, options = _OPTIONS[name]
    loss = function(*samples, **options, num_samples=counts, grouping=grouping).loss
    expected = reference.objective(name, *samples, _ALPHA, _LAMBDA, counts, grouping)
    np.testing.assert_allclose(-loss, expected, rtol=1e-12)


def test_groupings_differ_and_one_sample_of_the_divergence_makes_kl_and_renyi_equal(
    rng,
):
    samples = _samples(rng)
    found = {
        (name, grouping): _OPTIONS[name][0](
            *samples, **_OPTIONS[name][1], num_samples=(5, 1), grouping=grouping
        ).loss.numpy()
        for name in ("kl", "renyi")
        for grouping in ("difference", "terms")
    }
    np.testing.assert_allclose(
        found["kl", "difference"], found["renyi", "difference"], rtol=1e-12
    )
    for pair in (("kl", "renyi"), ("renyi", "kl")):
        assert np.abs(found[pair[0], "terms"] - found[pair[1], "terms"]).min() > 1e-3


def test_one_sample_is_the_beta_vae(rng):
    likelihood, prior, posterior = _samples(rng, (1, 7))
    ratio = (posterior - prior)[0]
    for name, beta in (("kl", 1 - _LAMBDA), ("renyi", 1 - _LAMBDA)):
        function, options = _OPTIONS[name]
        loss = function(likelihood, prior, posterior, **options).loss
        np.testing.assert_allclose(-loss, likelihood[0] - beta * ratio, rtol=1e-12)
    loss = monte_carlo.power_objective(likelihood, prior, posterior, alpha=4.0).loss
    np.testing.assert_allclose(-loss, likelihood[0] - 0.25 * ratio, rtol=1e-12)


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


@pytest.mark.parametrize("x", range(4))
def test_proposition_10_and_the_order_of_divergences(x):
    divergences = []
    for alpha in (0.5, 0.9, 1.0, 1.1, 1.5, 4.0):
        evidence, tilted, divergence = _exact(x, alpha)
        divergences.append(divergence)
        if alpha > 1:
            # Strictly: no x is determined by its latents here.
            assert alpha * evidence < tilted < evidence
        gap = (alpha - 1) * divergence
        assert tilted - alpha * evidence == pytest.approx(gap, abs=1e-12)
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


# === Mistakes ===


def test_mistakes_are_named(rng):
    samples = _samples(rng)
    with pytest.raises(ValueError, match=r"iwae: .*`log_p_z`"):
        monte_carlo.iwae(samples[0], samples[1][:, :1], samples[2])
    with pytest.raises(ValueError, match=r"elbo: .*`kl_q_p`"):
        elbo(samples[0], samples[1])
    with pytest.raises(ValueError, match="posterior_divergence: `alpha`"):
        posterior_divergence(*samples, alpha=-1.0)
    with pytest.raises(ValueError, match="at least one sample"):
        monte_carlo.iwae(*[s[:0] for s in samples])
    with pytest.raises(TypeError, match="must be floating point, found int64"):
        monte_carlo.iwae(*[s.astype(np.int64) for s in samples])
    with pytest.raises(ValueError, match="power_objective: `alpha`"):
        monte_carlo.power_objective(*samples, alpha=0.0)
    with pytest.raises(ValueError, match="must not exceed the 5 samples"):
        monte_carlo.kl_objective(*samples, lambda_=0.1, num_samples=(6, 1))
    with pytest.raises(ValueError, match=r"`num_samples\[1\]` must be an integer >= 1"):
        monte_carlo.kl_objective(*samples, lambda_=0.1, num_samples=(5, 0))
    counts = {"lambda_": 0.1, "num_samples": (5, 1), "grouping": "terms"}
    for one in (1.0, np.float32(1.0), tf.constant(1.0)):
        with pytest.raises(ValueError, match="no limit at `alpha` = 1"):
            monte_carlo.renyi_objective(*samples, alpha=one, **counts)
    with pytest.raises(
        ValueError, match="`alpha` must be finite and positive, found 0"
    ):
        monte_carlo.alpha_iwae(*samples, alpha=0.0)
    for counts in (2, (1, 2, 3)):
        with pytest.raises(ValueError, match="`num_samples` must be the counts of evi"):
            monte_carlo.kl_objective(*samples, lambda_=0.1, num_samples=counts)
    with pytest.raises(ValueError, match="`lambda_` must be finite, found nan"):
        monte_carlo.kl_objective(*samples, lambda_=np.nan)
    with pytest.raises(ValueError, match="`grouping` must be"):
        monte_carlo.kl_objective(*samples, lambda_=0.1, grouping="other")
