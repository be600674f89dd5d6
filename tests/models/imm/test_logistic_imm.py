"""Logistic regression with induced model matching, alone and many at once."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.data import LinearDiscriminant
from rlm_tf.models import (
    LogisticIMM,
    coefficient_from_ratio,
    fit_logistic_runs,
    logistic_logits,
    published_ratio,
    ratio_from_coefficient,
)
from rlm_tf.restricted import BinnedModel, TabularModel

# Tracing takes longer than the few steps of most tests.
pytestmark = pytest.mark.eager

TASK = LinearDiscriminant((1.0, -0.5, 0.7), 0.1)


def _data(rng, size=12, runs=None):
    x, y = TASK.sample(size, rng, runs)
    probs = TASK.restricted().positive_probs(x[..., :1].reshape(-1, 1))
    return x, y, probs.numpy().reshape(y.shape)


def _model(ratio=0.6, **options) -> LogisticIMM:
    model = LogisticIMM(TASK.restricted(), ratio=ratio, **options)
    model.compile(keras.optimizers.SGD(1.0))
    return model


def _losses_by_loops(x, y, probs, kernel, bias, alpha=1.0):
    """Cross-entropy and IMM of Eqs. (1) to (3), means over examples, in float64."""
    x = np.asarray(x, np.float64)
    size = len(x)
    cross_entropy = imm = 0.0
    for s in range(size):
        q = 1 / (1 + np.exp(-(x[s] @ kernel + bias)))
        cross_entropy -= np.log(q if y[s] else 1 - q)
        total = induced = 0.0
        for t in range(size):
            weight = np.exp(-alpha * abs(x[t, 0] - x[s, 0]))
            mixed = np.array([x[s, 0], x[t, 1], x[t, 2]])
            total += weight
            induced += weight / (1 + np.exp(-(mixed @ kernel + bias)))
        induced /= total
        imm -= probs[s] * np.log(induced) + (1 - probs[s]) * np.log(1 - induced)
    return cross_entropy / size, imm / size


# === Losses ===


def test_losses_by_loops(rng):
    x, y, probs = _data(rng)
    model = _model(0.6, inverse_bandwidth=2.0)
    kernel, bias = rng.normal(size=3), 0.3
    model.kernel.assign(kernel)
    model.bias.assign(bias)
    logs = model.evaluate(x, y, verbose=0, return_dict=True)
    cross_entropy, imm = _losses_by_loops(x, y, probs, kernel, bias, 2.0)
    assert logs["cross_entropy"] == pytest.approx(cross_entropy, rel=1e-5)
    assert logs["imm"] == pytest.approx(imm, rel=1e-5)
    assert logs["loss"] == pytest.approx(0.4 * cross_entropy + 0.6 * imm, rel=1e-5)
    guesses = x @ kernel + bias > 0
    assert logs["accuracy"] == pytest.approx(np.mean(guesses == y))
    np.testing.assert_allclose(
        model.predict(x, verbose=0), 1 / (1 + np.exp(-(x @ kernel + bias))), rtol=1e-5
    )


def test_a_step_follows_the_gradient(rng):
    x, y, probs = _data(rng)
    model = _model(0.6)
    start = rng.normal(size=3)
    model.kernel.assign(start)
    model.train_on_batch(x, y)
    step = 1e-5

    def objective(kernel, bias):
        cross_entropy, imm = _losses_by_loops(x, y, probs, kernel, bias)
        return 0.4 * cross_entropy + 0.6 * imm

    for i in range(3):
        shift = np.eye(3)[i] * step
        slope = objective(start + shift, 0.0) - objective(start - shift, 0.0)
        moved = model.kernel.numpy()[i] - start[i]
        np.testing.assert_allclose(moved, -slope / (2 * step), rtol=1e-3, atol=1e-5)
    slope = objective(start, step) - objective(start, -step)
    np.testing.assert_allclose(model.bias, -slope / (2 * step), rtol=1e-3, atol=1e-5)


def test_ratios_and_coefficients():
    assert published_ratio(2) == pytest.approx(0.7958)
    assert published_ratio(50) == pytest.approx(0.263)
    assert published_ratio(1000) == 0
    assert ratio_from_coefficient(coefficient_from_ratio(0.3)) == pytest.approx(0.3)


def test_interpolating_is_adding_at_a_smaller_rate(rng):
    """(1 - r) CE + r IMM at rate 1 is CE + lambda IMM at rate 1 / (1 + lambda)."""
    x, y, probs = _data(rng)
    weights = fit_logistic_runs(x[None], y[None], probs[None], 0.75, steps=5)
    # lambda = 3: four times the interpolated loss, a quarter of the rate.
    model = LogisticIMM(TASK.restricted(), ratio=0.75, loss_scale=4.0)
    model.compile(keras.optimizers.SGD(0.25))
    model.fit(x, y, batch_size=12, epochs=5, verbose=0, shuffle=False)
    np.testing.assert_allclose(model.kernel, weights.kernels[0], rtol=1e-4)


# === Neighbours ===


def test_fixed_neighbours_take_the_batchs_place(rng):
    x, y, _ = _data(rng)
    model = _model()
    model.kernel.assign([1.0, -2.0, 0.5])
    whole = model.evaluate(x, y, verbose=0, batch_size=12, return_dict=True)
    model = _model()
    model.kernel.assign([1.0, -2.0, 0.5])
    model.set_neighbors(x)
    parts = model.evaluate(x, y, verbose=0, batch_size=5, return_dict=True)
    for name, value in whole.items():
        assert parts[name] == pytest.approx(value, rel=1e-5)


def test_examples_without_weight_are_nobodys_neighbours(rng):
    x, y, _ = _data(rng)
    weights = np.ones(12, np.float32)
    weights[7:] = 0
    model = _model()
    model.kernel.assign([1.0, -2.0, 0.5])
    found = model.evaluate(x, y, sample_weight=weights, verbose=0, return_dict=True)
    alone = model.evaluate(x[:7], y[:7], verbose=0, return_dict=True)
    for name, value in alone.items():
        assert found[name] == pytest.approx(value, rel=1e-5)


# === Many runs ===


@pytest.mark.parametrize("ratio", [pytest.param(0.0, marks=pytest.mark.landing), 0.6])
def test_many_runs_are_those_of_fit(rng, ratio):
    x, y, probs = _data(rng, runs=3)
    weights = fit_logistic_runs(x, y, probs, ratio, steps=12, learning_rate=0.5)
    for run in range(3):
        model = LogisticIMM(TASK.restricted(), ratio=ratio)
        model.compile(keras.optimizers.SGD(0.5))
        model.fit(x[run], y[run], batch_size=12, epochs=12, verbose=0, shuffle=False)
        np.testing.assert_allclose(weights.kernels[run], model.kernel, rtol=1e-4)
        np.testing.assert_allclose(weights.biases[run], model.bias, rtol=1e-3)


@pytest.mark.parametrize("objective", ["imm", "noising"])
def test_options_belong_to_runs(rng, objective):
    """Each run has its own ratio, bandwidth and weights; float64 stays."""
    x, y, probs = _data(rng, runs=2)
    x = x.astype(np.float64)
    kept = np.ones((2, 12))
    kept[1, [2, 5]] = 0
    options = {"objective": objective, "steps": 40}
    both = fit_logistic_runs(
        x,
        y,
        probs,
        [0.3, 0.8],
        inverse_bandwidths=[0.5, 2.0],
        weights=kept,
        **options,
    )
    assert both.kernels.dtype == tf.float64
    left = np.delete(np.arange(12), [2, 5])
    alone = fit_logistic_runs(
        x[1:, left],
        y[1:, left],
        probs[1:, left],
        0.8,
        inverse_bandwidths=2.0,
        **options,
    )
    np.testing.assert_allclose(both.kernels[1], alone.kernels[0], rtol=1e-9)
    first = fit_logistic_runs(
        x[:1], y[:1], probs[:1], 0.3, inverse_bandwidths=0.5, **options
    )
    np.testing.assert_allclose(both.kernels[0], first.kernels[0], rtol=1e-9)


def test_noising_pits_the_target_against_the_model_itself(rng):
    """Its gradient is that of cross-entropy with mixed labels."""
    x, y, probs = _data(rng, runs=1)
    mixed = 0.4 * y[0] + 0.6 * probs[0]
    kernel, bias = np.zeros(3), 0.0
    for _ in range(20):
        error = 1 / (1 + np.exp(-(x[0] @ kernel + bias))) - mixed
        kernel, bias = kernel - error @ x[0] / 12, bias - error.mean()
    weights = fit_logistic_runs(x, y, probs, 0.6, objective="noising", steps=20)
    np.testing.assert_allclose(weights.kernels[0], kernel, rtol=1e-4)
    np.testing.assert_allclose(weights.biases[0], bias, rtol=1e-3, atol=1e-6)


def test_logits_of_shared_and_own_points(rng):
    x, y, probs = _data(rng, runs=2)
    weights = fit_logistic_runs(x, y, probs, 0.5, steps=5)
    own = logistic_logits(weights, x)
    np.testing.assert_allclose(logistic_logits(weights, x[1])[1], own[1], rtol=1e-5)
    expected = x[0] @ weights.kernels[0].numpy() + weights.biases[0].numpy()
    np.testing.assert_allclose(own[0], expected, rtol=1e-4, atol=1e-6)


@pytest.mark.graph
def test_imm_helps_where_examples_are_few(rng):
    """Ten examples: the gain is many standard errors of its mean over 200 data sets."""
    x, y, probs = _data(rng, 10, 200)
    test_x, test_y = TASK.sample(4000, rng)
    plain, helped = (
        ((logistic_logits(weights, test_x).numpy() > 0) == test_y).mean(axis=1)
        for weights in (
            fit_logistic_runs(x, y, probs, ratio, steps=500)
            for ratio in (0.0, published_ratio(10))
        )
    )
    gains = helped - plain
    assert gains.mean() > 5 * gains.std(ddof=1) / np.sqrt(200)
    assert helped.std() < plain.std()


# === Replicas, files, mistakes ===


@pytest.mark.landing
@pytest.mark.graph
@pytest.mark.parametrize("fixed", [True, False])
def test_two_replicas_equal_one_device(rng, two_replicas, fixed):
    """The last batch is smaller, and its replicas have unequal shares."""
    x, y, _ = _data(rng, 19)
    results = []
    for strategy in (tf.distribute.get_strategy(), two_replicas):
        with strategy.scope():
            model = LogisticIMM(TASK.restricted(), clip_norm=0.3)
            model.compile(keras.optimizers.SGD(1.0))
        model.set_neighbors(x if fixed else None)
        history = model.fit(
            x, y, batch_size=8, epochs=3, verbose=0, shuffle=False
        ).history
        results.append((history, np.append(model.kernel.numpy(), model.bias.numpy())))
    (history, weights), (other_history, other_weights) = results
    for name in ("loss", "cross_entropy", "imm", "accuracy"):
        np.testing.assert_allclose(other_history[name], history[name], rtol=1e-5)
    np.testing.assert_allclose(other_weights, weights, atol=1e-6)


def test_a_file_keeps_everything_but_the_neighbours(rng, tmp_path):
    x, y, _ = _data(rng)
    schedule = keras.optimizers.schedules.ExponentialDecay(0.8, 5, 0.5)
    model = LogisticIMM(
        TASK.restricted(), ratio=schedule, inverse_bandwidth=0.4, clip_norm=1.0
    )
    model.compile(keras.optimizers.Adam(0.1))
    model.set_neighbors(x)
    model.fit(x, y, epochs=2, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(
        loaded.predict(x, verbose=0), model.predict(x, verbose=0)
    )
    assert loaded._neighbors is None
    loaded.set_neighbors(x)
    for each in (model, loaded):
        each.train_on_batch(x, y)
    np.testing.assert_allclose(loaded.kernel, model.kernel, rtol=1e-5)


def test_without_restricted_model_it_is_logistic_regression(rng):
    x, y, probs = _data(rng)
    model = LogisticIMM()
    model.compile(keras.optimizers.SGD(1.0))
    model.fit(x, y, batch_size=12, epochs=10, verbose=0, shuffle=False)
    plain = fit_logistic_runs(x[None], y[None], probs[None], 0.0, steps=10)
    np.testing.assert_allclose(model.kernel, plain.kernels[0], rtol=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ratio": 1.5}, r"`ratio` must lie in \[0, 1\], found 1\.5"),
        ({"inverse_bandwidth": -1.0}, "`inverse_bandwidth` must be finite"),
        ({"short_features": (5,)}, "must be below `num_features`, 3"),
        ({"short_features": (0, 1)}, "takes 1 features, `short_features` names 2"),
        ({"short_features": ()}, "`short_features` must be some indices"),
        ({"num_features": 0}, "`num_features` must be an integer >= 1"),
    ],
)
def test_mistakes(options, message):
    with pytest.raises(ValueError, match=message):
        LogisticIMM(TASK.restricted(), **options)


def test_mistakes_of_runs(rng):
    x, y, probs = _data(rng, runs=2)
    with pytest.raises(ValueError, match="`objective` must be one of imm, noising"):
        fit_logistic_runs(x, y, probs, 0.5, objective="none")
    with pytest.raises(ValueError, match="axis n of `y`"):
        fit_logistic_runs(x, y[:, :5], probs, 0.5)
    with pytest.raises(ValueError, match="must have two outcomes, found 3"):
        LogisticIMM(BinnedModel(4, 3))
    with pytest.raises(ValueError, match="must be a FeatureModel or None, found Tab"):
        LogisticIMM(TabularModel(2, 2))
