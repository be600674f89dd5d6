"""Induced model matching around any Keras classifier."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.data import LinearDiscriminant
from rlm_tf.models import LogisticIMM, NeighborModelMatching
from rlm_tf.restricted import BinnedModel

# Tracing takes longer than the few steps of most tests.
pytestmark = pytest.mark.eager

CLASSES = 3


def _network(dropout=0.0) -> keras.Model:
    return keras.Sequential(
        [
            keras.Input((2, 2, 1)),
            keras.layers.Flatten(),
            keras.layers.Dense(5, "tanh", kernel_initializer=_normal(1)),
            keras.layers.Dropout(dropout),
            keras.layers.Dense(CLASSES, kernel_initializer=_normal(2)),
        ]
    )


def _normal(seed):
    return keras.initializers.RandomNormal(stddev=0.7, seed=seed)


def _restricted(rng) -> BinnedModel:
    x = rng.uniform(-1, 1, 300)
    return BinnedModel(4, CLASSES).fit(x, rng.integers(CLASSES, size=300))


def _batch(rng, size=6):
    x = rng.uniform(-1, 1, (size, 2, 2, 1)).astype(np.float32)
    return x, rng.integers(CLASSES, size=size)


def test_losses_by_loops(rng):
    x, y = _batch(rng)
    restricted = _restricted(rng)
    network = _network()
    model = NeighborModelMatching(
        network, restricted, (2,), ratio=0.3, inverse_bandwidth=1.5
    )
    model.compile("sgd")
    logs = model.evaluate(x, y, verbose=0, return_dict=True)
    flat = x.reshape(6, 4)
    imm = []
    for s in range(6):
        target = restricted.probs(flat[s : s + 1, 2:3]).numpy()[0]
        induced, total = np.zeros(CLASSES), 0.0
        for t in range(6):
            mixed = flat[t].copy()
            mixed[2] = flat[s, 2]
            logits = network(mixed.reshape(1, 2, 2, 1)).numpy()[0].astype(np.float64)
            weight = np.exp(-1.5 * abs(flat[t, 2] - flat[s, 2]))
            induced += weight * np.exp(logits) / np.exp(logits).sum()
            total += weight
        imm.append(-np.sum(target * np.log(induced / total)))
    assert logs["imm"] == pytest.approx(np.mean(imm), rel=1e-5)
    log_probs = tf.nn.log_softmax(network(x)).numpy()
    cross_entropy = -log_probs[np.arange(6), y].mean()
    assert logs["cross_entropy"] == pytest.approx(cross_entropy, rel=1e-5)
    total = 0.7 * cross_entropy + 0.3 * np.mean(imm)
    assert logs["loss"] == pytest.approx(total, rel=1e-5)


def test_a_linear_network_is_logistic_regression(rng):
    task = LinearDiscriminant()
    x, y = task.sample(8, rng)
    logistic = LogisticIMM(task.restricted(), ratio=0.5)
    logistic.compile(keras.optimizers.SGD(1.0))
    # Two logits, of which the first stays zero: half the gradient goes to the second.
    inputs = keras.Input((3,))
    second = keras.layers.Dense(1, kernel_initializer="zeros", name="second")(inputs)
    first = keras.ops.zeros_like(second)
    network = keras.Model(inputs, keras.ops.concatenate([first, second], axis=-1))
    model = NeighborModelMatching(network, task.restricted(), ratio=0.5)
    model.compile(keras.optimizers.SGD(1.0))
    for each in (logistic, model):
        each.fit(x, y, batch_size=8, epochs=10, verbose=0, shuffle=False)
    kernel = network.get_layer("second").kernel.numpy()[:, 0]
    np.testing.assert_allclose(kernel, logistic.kernel, rtol=1e-4, atol=1e-6)


@pytest.mark.landing
@pytest.mark.graph
def test_matching_teaches_the_restricted_task(rng):
    """With the ratio at one only the restricted model is heard."""
    x, y = _batch(rng, 64)
    restricted = _restricted(rng)
    model = NeighborModelMatching(
        _network(), restricted, (2,), ratio=1.0, inverse_bandwidth=0.0
    )
    model.compile(keras.optimizers.Adam(0.05))
    before = model.evaluate(x, y, batch_size=64, verbose=0, return_dict=True)["imm"]
    model.fit(x, y, batch_size=64, epochs=150, verbose=0)
    after = model.evaluate(x, y, batch_size=64, verbose=0, return_dict=True)["imm"]
    probs = restricted.probs(x.reshape(64, 4)[:, 2:3]).numpy()
    entropy = -np.sum(probs * np.log(probs), axis=1).mean()
    assert after - entropy < 0.1 * (before - entropy)


def test_a_file_keeps_network_and_restricted_model(rng, tmp_path):
    x, y = _batch(rng)
    model = NeighborModelMatching(
        _network(0.3), _restricted(rng), (1,), ratio=0.4, inverse_bandwidth=0.5
    )
    model.compile(keras.optimizers.Adam(0.01))
    model.fit(x, y, epochs=2, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(x), model(x))
    first = model.evaluate(x, y, verbose=0, return_dict=True)
    assert loaded.evaluate(x, y, verbose=0, return_dict=True) == pytest.approx(first)


def test_short_features_must_differ(rng):
    with pytest.raises(ValueError, match=r"must differ, found \[1, 1\]"):
        NeighborModelMatching(_network(), None, (1, 1))
