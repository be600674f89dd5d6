"""Many logistic regressions at once: several restrictions, and mistakes."""

from __future__ import annotations

import numpy as np
import pytest

from rlm_tf.batched_runs.logistic_runs import (
    Restriction,
    fit_restricted_runs,
    neighbor_kernel,
)
from rlm_tf.data import LinearDiscriminant
from rlm_tf.models import LogisticWeights, fit_logistic_runs

# Tracing takes longer than the few steps of most tests.
pytestmark = pytest.mark.eager

TASK = LinearDiscriminant((1.0, -0.5, 0.7), 0.1)


def _data(rng, runs=None):
    x, y = TASK.sample(12, rng, runs)
    probs = TASK.restricted().positive_probs(x[..., :1].reshape(-1, 1))
    return x, y, probs.numpy().reshape(y.shape)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ratios": 1.7}, r"`ratios` must lie in \[0, 1\], found 1\.7"),
        ({"ratios": np.nan}, r"`ratios` must lie in \[0, 1\], found nan"),
        ({"short_features": (3,)}, r"`short_features` must lie in \[0, 2\]"),
        ({"short_features": (-3,)}, r"`short_features` must lie in \[0, 2\]"),
        ({"inverse_bandwidths": -1.0}, "`inverse_bandwidths` must be finite and at"),
        ({"weight_decays": -0.1}, "`weight_decays` must be finite and at least 0"),
        ({"learning_rate": -1.0}, "`learning_rate` must be finite and at least 0"),
        ({"steps": 2.5}, "`steps` must be an integer >= 0"),
    ],
)
def test_impossible_settings_of_runs(rng, arguments, message):
    x, y, probs = _data(rng, runs=2)
    arguments = {"ratios": 0.5, **arguments}
    with pytest.raises(ValueError, match=message):
        fit_logistic_runs(x, y, probs, **arguments)


def test_impossible_data_of_runs(rng):
    x, y, probs = _data(rng, runs=2)
    with pytest.raises(ValueError, match=r"`y` must lie in \[0, 1\], found 2"):
        fit_logistic_runs(x, y + 1, probs, 0.5)
    with pytest.raises(ValueError, match=r"`target_probs` must lie in \[0, 1\]"):
        fit_logistic_runs(x, y, probs + 1, 0.5)
    with pytest.raises(TypeError, match="`x` must be floating point, found int64"):
        fit_logistic_runs(x.astype(np.int64), y, probs, 0.5)
    restriction = Restriction(
        probs, np.full(2, 0.7), neighbor_kernel(x[..., :1], 1.0), np.eye(3)[0]
    )
    with pytest.raises(ValueError, match=r"`sum_of_ratios` must lie in .*found 1\.4"):
        fit_restricted_runs(x, y, [restriction, restriction])


def test_several_restrictions_and_weight_decay_by_loops(rng):
    """One step of gradient descent in float64, from weights that are not zero."""
    x, y, probs = _data(rng, runs=1)
    x = x.astype(np.float64)
    kernel, bias = rng.normal(size=3), 0.3
    shorts, shares, alphas = [[0], [0, 2]], [0.3, 0.2], [1.0, 2.0]
    restrictions = []
    for short, share, alpha in zip(shorts, shares, alphas, strict=True):
        seen = np.isin(np.arange(3), short).astype(float)
        restrictions.append(
            Restriction(probs, [share], neighbor_kernel(x * seen, alpha), seen)
        )
    found = fit_restricted_runs(
        x,
        y,
        restrictions,
        weight_decays=0.4,
        initial=LogisticWeights(kernel[np.newaxis], np.array([bias])),
        learning_rate=0.5,
        steps=1,
    )

    def objective(parameters):
        kernel, bias = parameters[:3], parameters[3]
        total = 0.2 * kernel @ kernel
        for i in range(12):
            q = 1 / (1 + np.exp(-(x[0, i] @ kernel + bias)))
            total -= 0.5 * np.log(q if y[0, i] else 1 - q) / 12
            for short, share, alpha in zip(shorts, shares, alphas, strict=True):
                induced = weight = 0.0
                for k in range(12):
                    near = np.exp(
                        -alpha * np.abs(x[0, k, short] - x[0, i, short]).sum()
                    )
                    mixed = x[0, k].copy()
                    mixed[short] = x[0, i, short]
                    induced += near / (1 + np.exp(-(mixed @ kernel + bias)))
                    weight += near
                induced /= weight
                p = float(probs[0, i])
                loss = -p * np.log(induced) - (1 - p) * np.log(1 - induced)
                total += share * loss / 12
        return total

    start = np.append(kernel, bias)
    for place in range(4):
        shift = np.eye(4)[place] * 1e-6
        slope = (objective(start + shift) - objective(start - shift)) / 2e-6
        ours = np.append(found.kernels[0], found.biases[0])[place]
        assert ours == pytest.approx(start[place] - 0.5 * slope, abs=1e-7)
