"""Baselines of the score function: what they may be, and what they do."""

from __future__ import annotations

import numpy as np
import pytest

from rlm_tf.objectives.gradient_estimators import cotangents
from tests.references import monte_carlo_reference as reference

_OPTIONS = {"objective": "renyi", "alpha": reference.ALPHA, "lambda_": 0.3}


def _score_gradients(x, **options):
    """The gradient by the logits of q of every pair of samples, their probabilities."""
    latents, probs = reference.tuples(2, x)
    found = cotangents(*reference.log_probs(latents, x), **_OPTIONS, **options)
    scores = np.eye(3)[latents] - reference.q_probs(x)
    return np.einsum("kn,knc->cn", found.score, scores), probs, found.objective


@pytest.mark.parametrize("x", range(4))
def test_a_given_baseline_takes_noise_away_and_nothing_else(x):
    plain, probs, objective = _score_gradients(x, estimator="reinforce")
    mean = float(objective.numpy() @ probs)
    found, _, _ = _score_gradients(x, estimator="reinforce", baseline=mean)
    np.testing.assert_allclose(found @ probs, plain @ probs, atol=1e-12)

    def variance(gradients):
        return np.sum((gradients - (gradients @ probs)[:, None]) ** 2 @ probs)

    assert variance(found) < variance(plain) / 2


def test_a_baseline_may_have_a_value_for_each_example(rng):
    log_probs = rng.normal(size=(3, 2, 4, 5))
    given = rng.normal(size=(4, 5))
    plain, found = (
        cotangents(*log_probs, estimator="reinforce", baseline=b, **_OPTIONS)
        for b in (None, given)
    )
    difference = np.broadcast_to(given, (2, 4, 5))
    np.testing.assert_allclose(plain.score - found.score, difference)
    np.testing.assert_array_equal(plain.log_p_z, found.log_p_z)


@pytest.mark.parametrize(
    ("estimator", "baseline", "message"),
    [
        (
            "reinforce",
            "swap_in",
            "'reinforce' must be numbers or None, found 'swap_in'",
        ),
        ("dreg", "leave_one_out", "of the estimators reinforce, vimco; leave it out"),
        ("vimco", 1.0, "'swap_in' or 'leave_one_out', found 1.0"),
        ("vimco", "other", "'swap_in' or 'leave_one_out', found 'other'"),
        ("reinforce", np.zeros([3]), "`baseline`"),
    ],
)
def test_baselines_of_other_estimators_are_refused(rng, estimator, baseline, message):
    log_probs = rng.normal(size=(3, 2, 4))
    with pytest.raises(ValueError, match=message):
        cotangents(*log_probs, estimator=estimator, baseline=baseline, **_OPTIONS)
