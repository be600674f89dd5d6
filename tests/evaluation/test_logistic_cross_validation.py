"""Cross-validation of the ratio and the bandwidth."""

from __future__ import annotations

import numpy as np
import pytest

from rlm_tf.data import LinearDiscriminant
from rlm_tf.evaluation import cross_validate_logistic
from rlm_tf.models import fit_logistic_runs

# Tracing takes longer than the few steps of most tests.
pytestmark = pytest.mark.eager

TASK = LinearDiscriminant()


def _data(rng, size, runs=None):
    x, y = TASK.sample(size, rng, runs)
    probs = TASK.restricted().positive_probs(x[..., :1].reshape(-1, 1))
    return x, y, probs.numpy().reshape(y.shape)


@pytest.mark.landing
def test_held_out_losses_by_loops(rng):
    """Every fold of every data set, ratio and bandwidth, trained on its own."""
    x, y, probs = _data(rng, 7, 2)
    ratios, bandwidths = (0.7, 0.0), (0.5, 2.0)
    found = cross_validate_logistic(
        x,
        y,
        probs,
        ratios=ratios,
        inverse_bandwidths=bandwidths,
        folds=3,
        seed=4,
        steps=15,
    )
    assert found.losses.shape == (2, 2, 2)
    fold_of = np.random.default_rng(4).permutation(np.arange(7) % 3)
    for run in range(2):
        for a, alpha in enumerate(bandwidths):
            for r, ratio in enumerate(ratios):
                losses, right = np.empty(7), np.empty(7)
                for fold in range(3):
                    kept, out = fold_of != fold, fold_of == fold
                    weights = fit_logistic_runs(
                        x[run : run + 1, kept],
                        y[run : run + 1, kept],
                        probs[run : run + 1, kept],
                        ratio,
                        inverse_bandwidths=alpha,
                        steps=15,
                    )
                    logits = x[run, out] @ weights.kernels[0].numpy()
                    logits = logits + weights.biases[0].numpy()
                    sign = 2 * y[run, out] - 1
                    losses[out] = np.log1p(np.exp(-sign * logits))
                    right[out] = (logits > 0) == y[run, out]
                np.testing.assert_allclose(
                    found.losses[run, a, r], losses.mean(), rtol=1e-4
                )
                assert found.accuracies[run, a, r] == pytest.approx(right.mean())
        best = np.unravel_index(found.losses[run].argmin(), (2, 2))
        assert found.inverse_bandwidths[run] == bandwidths[best[0]]
        assert found.ratios[run] == ratios[best[1]]


def test_one_data_set_and_as_many_folds_as_examples(rng):
    x, y, probs = _data(rng, 4)
    found = cross_validate_logistic(x, y, probs, folds=10, steps=5)
    assert found.losses.shape == (1, 1, 10)
    assert found.held_out_log_probs.shape == (1, 1, 10, 4, 2)
    total = np.exp(found.held_out_log_probs).sum(axis=-1)
    np.testing.assert_allclose(total, 1, rtol=1e-6)


def test_of_equal_losses_the_smallest_ratio_wins(rng):
    x, y, probs = _data(rng, 5)
    found = cross_validate_logistic(
        x, y, probs, ratios=(0.5, 0.2, 0.9), steps=0, inverse_bandwidths=(3.0, 1.0)
    )
    np.testing.assert_allclose(found.losses, np.log(2), rtol=1e-6)
    assert found.ratios[0] == 0.2 and found.inverse_bandwidths[0] == 3.0


@pytest.mark.graph
def test_it_chooses_imm_where_it_helps(rng):
    x, y, probs = _data(rng, 8, 40)
    found = cross_validate_logistic(x, y, probs, ratios=(0.0, 0.7), steps=300)
    assert np.mean(found.ratios == 0.7) > 0.6


def test_mistakes(rng):
    x, y, probs = _data(rng, 4)
    with pytest.raises(ValueError, match="the same without D; found shapes"):
        cross_validate_logistic(x, y[:3], probs)
    with pytest.raises(ValueError, match="`folds` must be an integer >= 2"):
        cross_validate_logistic(x, y, probs, folds=1)
    with pytest.raises(ValueError, match="found 4 examples, 0 ratios"):
        cross_validate_logistic(x, y, probs, ratios=())
