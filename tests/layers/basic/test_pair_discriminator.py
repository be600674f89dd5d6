"""Features and scores of pairs: oracles, loops, all pairs and their gradient."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.layers import PairDiscriminator, pair_features
from tests.references.bmi_reference import ORACLE

_FEATURES = ORACLE["pair_features"]


@pytest.mark.parametrize("order", ["paper", "authors"])
def test_features_of_the_oracle(order):
    x, y = (np.array([_FEATURES[name]]) for name in "xy")
    found = pair_features(x, y, order=order)
    assert found.dtype == tf.float64
    np.testing.assert_array_equal(found[0], _FEATURES[order])


@pytest.mark.parametrize("name", ORACLE["sizes"]["discriminator"])
def test_parameters_of_the_oracle(name):
    case = ORACLE["sizes"]["discriminator"][name]
    layer = PairDiscriminator(case["units"], directions=case["directions"])
    layer.build(((None, case["features"]),) * 2)
    assert layer.count_params() == case["parameters"]


def _made(directions=1, order="paper", **options):
    layer = PairDiscriminator(
        4, directions=directions, order=order, seed=1, dtype="float64", **options
    )
    layer.build(((None, 3),) * 2)
    return layer


def _by_loops(layer, x, y):
    """The score of one pair."""
    values = [np.array(w) for w in layer.get_weights()]
    scores = []
    for number in range(layer.directions):
        kernel, bias, score_kernel, score_bias = values[4 * number : 4 * number + 4]
        a, b = (y, x) if number else (x, y)
        parts = [a, b, a - b, np.abs(a - b), a * b]
        if layer.order == "authors":
            parts[3:] = parts[:2:-1]
        hidden = np.maximum(np.concatenate(parts) @ kernel + bias, 0)
        scores.append(hidden @ score_kernel[:, 0] + score_bias[0])
    return np.mean(scores)


@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("order", ["paper", "authors"])
def test_scores_by_loops(rng, directions, order):
    layer = _made(directions, order)
    x, y = rng.normal(size=(2, 5, 3))
    expected = [_by_loops(layer, a, b) for a, b in zip(x, y, strict=True)]
    np.testing.assert_allclose(layer((x, y)), expected, rtol=1e-12)
    other = rng.normal(size=(4, 3))
    expected = [[_by_loops(layer, a, b) for b in other] for a in x]
    np.testing.assert_allclose(layer.all_pairs(x, other), expected, rtol=1e-12)


@pytest.mark.parametrize("directions", [1, 2])
def test_all_pairs_have_the_gradient_of_pairs(rng, directions):
    layer = _made(directions)
    x, y = (tf.constant(rng.normal(size=(n, 3))) for n in (3, 4))
    upstream = rng.normal(size=(3, 4))
    gradients = []
    for at_once in (True, False):
        with tf.GradientTape() as tape:
            tape.watch([x, y])
            if at_once:
                scores = layer.all_pairs(x, y)
            else:
                pairs = tf.repeat(x, 4, axis=0), tf.tile(y, [3, 1])
                scores = tf.reshape(layer(pairs), [3, 4])
            loss = tf.reduce_sum(upstream * scores)
        variables = [v.value for v in layer.trainable_variables]
        gradients.append(tape.gradient(loss, [x, y, *variables]))
    for found, expected in zip(*gradients, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_dropout_acts_in_training_alone(rng):
    layer = _made(feature_dropout=0.5, hidden_dropout=0.3)
    pair = tuple(rng.normal(size=(2, 6, 3)))
    np.testing.assert_array_equal(layer(pair), layer(pair))
    assert np.any(layer(pair, training=True) != layer(pair, training=True))


def test_it_comes_back_from_its_config(rng):
    layer = _made(2, "authors", feature_dropout=0.1)
    again = PairDiscriminator.from_config(layer.get_config())
    again.build(((None, 3),) * 2)
    for found, expected in zip(again.weights, layer.weights, strict=True):
        np.testing.assert_array_equal(found, expected)
    kernels = [w.numpy() for w in layer.weights if "kernel" in w.name]
    assert np.any(kernels[0] != kernels[2])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PairDiscriminator(0), "`units` must be an integer >= 1"),
        (lambda: PairDiscriminator(directions=3), "`directions` must be 1 or 2"),
        (lambda: PairDiscriminator(order="x"), "`order` must be one of paper, authors"),
        (lambda: PairDiscriminator(hidden_dropout=1.0), "`hidden_dropout` must lie"),
        (lambda: pair_features(np.ones(2), np.ones(3)), "equally many features"),
        (lambda: _made()((np.ones((2, 3)), np.ones((3, 3)))), "axis B of `y` is 3"),
    ],
)
def test_mistakes(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
@pytest.mark.parametrize("directions", [1, 2])
def test_all_pairs_in_mixed_precision(policy, directions):
    values = np.random.default_rng(0).normal(size=(2, 3, 4)).astype("float32")
    critic = PairDiscriminator(5, directions=directions, dtype=policy)
    found = critic.all_pairs(*values)
    assert found.dtype == critic.compute_dtype
    for i, j in ((0, 1), (2, 0)):
        expected = critic((values[0, i : i + 1], values[1, j : j + 1]))
        np.testing.assert_allclose(
            np.float32(found[i, j]), np.float32(expected[0]), atol=0.05
        )


def test_initial_weights():
    """Kernels as Glorot's normal distribution, biases within 1 / sqrt(fan in)."""
    critic = PairDiscriminator(60)
    critic.build(((None, 20), (None, 20)))
    kernel, bias, score_kernel, score_bias = map(np.array, critic.weights)
    assert kernel.std() == pytest.approx(np.sqrt(2 / (100 + 60)), rel=0.05)
    assert np.abs(bias).max() <= 0.1 and np.abs(bias).std() > 0.01
    assert score_kernel.std() == pytest.approx(np.sqrt(2 / 61), rel=0.3)
    assert np.abs(score_bias).max() <= 1 / np.sqrt(60)
