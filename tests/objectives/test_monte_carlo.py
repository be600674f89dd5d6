"""Monte Carlo objectives: values against enumeration and definitions, mistakes."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.objectives import monte_carlo
from rlm_tf.objectives.elbo import elbo
from rlm_tf.objectives.gradient_estimators import cotangents
from rlm_tf.objectives.posterior_divergence import posterior_divergence
from tests.references import monte_carlo_reference as reference

ORACLE = reference.ORACLE
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


@pytest.mark.parametrize("name", ["kl", "renyi"])
def test_examples_may_have_weights_and_alphas_of_their_own(rng, name):
    samples = _samples(rng, (5, 2, 3))
    lambdas, alphas = np.array([0.1, 0.5, -0.3]), np.array([0.5, 1.0, 4.0])

    def loss(examples, lambda_, alpha):
        options = {"lambda_": lambda_} | ({"alpha": alpha} if name == "renyi" else {})
        logs = [values[..., examples] for values in samples]
        return _OPTIONS[name][0](*logs, **options).loss

    expected = [loss(i, lambdas[i], alphas[i]) for i in range(3)]
    found = loss(slice(None), lambdas, alphas)
    np.testing.assert_allclose(found, np.stack(expected, axis=1), rtol=1e-12)


@pytest.mark.parametrize("make", [list, np.array, tf.constant])
def test_options_may_be_lists_and_of_other_dtypes(rng, make):
    samples = _samples(rng, (5, 2))
    loss = monte_carlo.power_objective(*samples, alpha=make([2, 3])).loss
    expected = monte_carlo.power_objective(*samples, alpha=np.array([2.0, 3.0])).loss
    np.testing.assert_allclose(loss, expected, rtol=1e-12)
    counts = {"num_samples": (5, 1), "grouping": "terms"}
    loss = monte_carlo.kl_objective(*samples, lambda_=make([1, 0]), **counts).loss
    options = {"lambda_": np.array([1.0, 0.0]), **counts}
    expected = monte_carlo.kl_objective(*samples, **options).loss
    np.testing.assert_allclose(loss, expected, rtol=1e-12)


def test_counts_are_checked_as_graphs_run(rng):
    samples = [tf.constant(part) for part in _samples(rng, (4, 3))]
    spec = [tf.TensorSpec([None, 3], tf.float64)] * 3

    @tf.function(input_signature=spec)
    def loss(*parts):
        return monte_carlo.kl_objective(*parts, lambda_=0.3, num_samples=(4, 2)).loss

    expected = monte_carlo.kl_objective(*samples, lambda_=0.3, num_samples=(4, 2)).loss
    np.testing.assert_allclose(loss(*samples), expected, rtol=1e-12)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\(4, 2\) exceeds"):
        loss(*[part[:3] for part in samples])


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


@pytest.mark.parametrize("size", [(4,), (1, 3, 2), (5, 3, 2)])
def test_options_that_do_not_fit_the_examples_are_refused(rng, size):
    """They would make losses of another shape than the examples."""
    samples, option = _samples(rng), np.full(size, 0.5)
    message = r"`{}` must be a scalar or have the shape of the examples, \[3, 2\]"
    for name, function in (
        ("lambda_", lambda: monte_carlo.kl_objective(*samples, lambda_=option)),
        ("alpha", lambda: monte_carlo.alpha_iwae(*samples, alpha=option)),
        ("alpha", lambda: posterior_divergence(*samples, alpha=option)),
        (
            "lambda_",
            lambda: elbo(samples[0], samples[1][0], objective="kl", lambda_=option),
        ),
    ):
        with pytest.raises(ValueError, match=message.format(name)):
            function()


@pytest.mark.parametrize("likelihood", [np.float32(-1.0), np.zeros((0, 4), np.float32)])
def test_no_samples_are_refused_everywhere(likelihood):
    message = r"`log_p_x_given_z` must have axes \[K ...\] with at least one sample"
    for name, (function, options) in _OPTIONS.items():
        with pytest.raises(ValueError, match=message):
            function(likelihood, likelihood, likelihood, **options)
        with pytest.raises(ValueError, match=message):
            elbo(likelihood, np.zeros(4, np.float32), objective=name, **options)
    with pytest.raises(ValueError, match=message):
        posterior_divergence(likelihood, likelihood, likelihood)
    with pytest.raises(ValueError, match=message):
        cotangents(*[likelihood] * 3, objective="kl", estimator="dreg")
