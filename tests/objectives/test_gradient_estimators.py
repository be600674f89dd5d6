"""Gradient estimators: exact expectations by enumeration and by quadrature."""

from __future__ import annotations

import json
import pathlib

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

from rlm_tf.objectives import monte_carlo
from rlm_tf.objectives.gradient_estimators import cotangents
from tests.references import monte_carlo_reference as reference

_ORACLE = json.loads(
    (
        pathlib.Path(__file__).parents[1] / "references" / "monte_carlo_oracle.json"
    ).read_text()
)["per_x"]
_OPTIONS = {"alpha": reference.ALPHA, "lambda_": reference.LAMBDA}
_OBJECTIVES = ("iwae", "alpha_iwae", "u_hat", "kl", "renyi", "power")
_COLUMNS = dict(
    zip(
        _OBJECTIVES,
        ("IWAE", "IWAE_alpha", "U", "O_KL", "O_Renyi", "O_power"),
        strict=True,
    )
)
_ASYMMETRIC = [
    {"objective": objective, "num_samples": counts, "grouping": grouping}
    for objective in ("kl", "renyi")
    for counts in ((3, 1), (1, 3), (3, 2))
    for grouping in ("difference", "terms")
]


# === Factors at fixed samples ===


@pytest.mark.parametrize(
    "options", [*({"objective": o} for o in _OBJECTIVES), *_ASYMMETRIC]
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


# === Discrete latents: exact by enumeration ===


def _score_gradients(x, drawn, **options):
    """The gradient by the logits of q of every tuple `[3, 3^K]`, and probabilities."""
    latents, probs = reference.tuples(drawn, x)
    found = cotangents(*reference.log_probs(latents, x), **options)
    # d ln q(z) / d logits = onehot(z) - q.
    scores = np.eye(3)[latents] - reference.q_probs(x)
    return np.einsum("kn,knc->cn", found.score, scores), probs


@pytest.mark.parametrize("objective", _OBJECTIVES)
@pytest.mark.parametrize("num_samples", [2, 3])
@pytest.mark.parametrize("x", range(4))
def test_score_function_estimators_have_the_exact_mean_and_variance(
    objective, num_samples, x
):
    oracle = _ORACLE[x]
    name = f"{_COLUMNS[objective]}_K{num_samples}"
    variances = {}
    for column, estimator, baseline in (
        ("reinforce", "reinforce", None),
        ("vimco", "vimco", "swap_in"),
        ("loo", "vimco", "leave_one_out"),
    ):
        gradients, probs = _score_gradients(
            x,
            num_samples,
            objective=objective,
            estimator=estimator,
            baseline=baseline,
            **_OPTIONS,
        )
        mean = gradients @ probs
        np.testing.assert_allclose(mean, oracle["grad_q_logits"][name], atol=1e-9)
        variance = np.sum((gradients - mean[:, None]) ** 2 @ probs)
        variances[column] = variance
        expected = oracle["estimator_variance_total"][f"{name}_{column}"]
        assert variance == pytest.approx(expected, rel=1e-8)
    assert variances["vimco"] < variances["reinforce"]
    if num_samples == 2:
        assert variances["vimco"] == pytest.approx(variances["loo"], rel=1e-10)


@pytest.mark.parametrize("options", _ASYMMETRIC)
def test_asymmetric_score_function_estimators_are_unbiased(options):
    """Against differences of the exact expectation, the logits moved by 1e-5."""
    x, step = 1, 1e-5
    latents, _ = reference.tuples(3, x)

    def expectation(logits):
        q = np.exp(logits) / np.exp(logits).sum()
        likelihood, prior, _ = reference.log_probs(latents, x)
        value = reference.objective(
            options["objective"],
            likelihood,
            prior,
            np.log(q)[latents],
            reference.ALPHA,
            reference.LAMBDA,
            options["num_samples"],
            options["grouping"],
        )
        return np.prod(q[latents], axis=0) @ value

    logits = reference.Q_LOGITS[x]
    expected = [
        (expectation(logits + step * e) - expectation(logits - step * e)) / (2 * step)
        for e in np.eye(3)
    ]
    variances = {}
    for estimator in ("reinforce", "vimco"):
        gradients, probs = _score_gradients(
            x, 3, estimator=estimator, **options, **_OPTIONS
        )
        mean = gradients @ probs
        np.testing.assert_allclose(mean, expected, atol=1e-8)
        variances[estimator] = np.sum((gradients - mean[:, None]) ** 2 @ probs)
    assert variances["vimco"] < variances["reinforce"]


def test_signal_of_vimco_is_that_of_mnih_and_rezende(rng):
    """For S, TFP computes the same swap-in baselines."""
    likelihood, prior, posterior = rng.normal(size=(3, 5, 4))
    found = cotangents(
        likelihood, prior, posterior, objective="iwae", estimator="vimco"
    )
    ratio = likelihood + prior - posterior
    swapped, soo = tfp.stats.log_soomean_exp(ratio, axis=0)
    signal = found.score + tf.nn.softmax(ratio, axis=0)
    np.testing.assert_allclose(signal, soo - swapped, rtol=1e-9)


# === Continuous latents: exact by quadrature ===

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
