"""Score-function estimators of discrete latents: exact by enumeration."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

from rlm_tf.objectives.gradient_estimators import cotangents
from tests.references import monte_carlo_reference as reference

_OPTIONS = {"alpha": reference.ALPHA, "lambda_": reference.LAMBDA}
_COLUMNS = {
    "iwae": "IWAE",
    "alpha_iwae": "IWAE_alpha",
    "u_hat": "U",
    "kl": "O_KL",
    "renyi": "O_Renyi",
    "power": "O_power",
}


def _score_gradients(x, drawn, **options):
    """The gradient by the logits of q of every tuple `[3, 3^K]`, and probabilities."""
    latents, probs = reference.tuples(drawn, x)
    found = cotangents(*reference.log_probs(latents, x), **options)
    # d ln q(z) / d logits = onehot(z) - q.
    scores = np.eye(3)[latents] - reference.q_probs(x)
    return np.einsum("kn,knc->cn", found.score, scores), probs


@pytest.mark.slow
@pytest.mark.parametrize("objective", _COLUMNS)
@pytest.mark.parametrize("num_samples", [2, 3])
@pytest.mark.parametrize("x", range(4))
def test_score_function_estimators_have_the_exact_mean_and_variance(
    objective, num_samples, x
):
    oracle = reference.ORACLE["per_x"][x]
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


@pytest.mark.parametrize("options", reference.ASYMMETRIC)
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
