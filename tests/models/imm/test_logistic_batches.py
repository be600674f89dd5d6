"""What batches `LogisticIMM` takes: weights, columns, odd labels."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.data import LinearDiscriminant
from rlm_tf.models import LogisticIMM, fit_logistic_runs

# Tracing takes longer than the few steps of most tests.
pytestmark = pytest.mark.eager

TASK = LinearDiscriminant((1.0, -0.5, 0.7), 0.1)


def _data(rng, runs=None):
    x, y = TASK.sample(12, rng, runs)
    probs = TASK.restricted().positive_probs(x[..., :1].reshape(-1, 1))
    return x, y, probs.numpy().reshape(y.shape)


@pytest.mark.parametrize("shape", [(12,), (12, 1)])
def test_weights_are_counts_of_examples(rng, shape):
    """An example of weight two is two, and a neighbour twice."""
    x, y, _ = _data(rng)
    weights = np.ones(12, np.float32)
    weights[[1, 4]] = 2
    weights[6] = 0
    model = LogisticIMM(TASK.restricted(), ratio=0.6)
    model.compile(keras.optimizers.SGD(0.5))
    data = (x, y.reshape(shape), weights.reshape(shape))
    dataset = tf.data.Dataset.from_tensors(data)
    history = model.fit(dataset, epochs=10, verbose=0).history
    times = np.repeat(np.arange(12), weights.astype(int))
    other = LogisticIMM(TASK.restricted(), ratio=0.6)
    other.compile(keras.optimizers.SGD(0.5))
    again = other.fit(x[times], y[times], batch_size=len(times), epochs=10, verbose=0)
    np.testing.assert_allclose(model.kernel, other.kernel, rtol=1e-4)
    assert history["accuracy"] == pytest.approx(again.history["accuracy"])
    runs = fit_logistic_runs(
        x[None],
        y[None],
        TASK.restricted().probs(x[:, :1])[None, :, 1],
        0.6,
        weights=weights[None],
        learning_rate=0.5,
        steps=10,
    )
    np.testing.assert_allclose(runs.kernels[0], model.kernel, rtol=1e-4)


def test_a_batch_without_weight_changes_nothing(rng):
    x, y, probs = _data(rng)
    model = LogisticIMM(TASK.restricted())
    model.compile(keras.optimizers.SGD(0.5))
    before = model.kernel.numpy() + 1.0
    model.kernel.assign(before)
    model.train_on_batch(x, y, sample_weight=np.zeros(12, np.float32))
    np.testing.assert_array_equal(model.kernel, before)
    runs = fit_logistic_runs(
        x[None], y[None], probs[None], 0.5, weights=np.zeros((1, 12)), steps=3
    )
    np.testing.assert_array_equal(runs.kernels, np.zeros((1, 3)))


@pytest.mark.graph
def test_impossible_batches(rng):
    x, y, _ = _data(rng)
    model = LogisticIMM(TASK.restricted())
    model.compile(keras.optimizers.SGD(0.5))
    for arguments, message in (
        ((x[:, :2], y), r"examples must have shape \[3\], found \[2\]"),
        ((x, np.eye(2, dtype=np.int32)[y]), r"`y` must have axes \[B\]"),
        ((x, y.astype(np.float32)), "`y` must be integer"),
    ):
        with pytest.raises(ValueError, match=message):
            model.train_on_batch(*arguments)
    message = r"LogisticIMM: labels must be in \[0, 2\), found 2\."
    with pytest.raises(ValueError, match=message):
        model.train_on_batch(x, y + 1)
    model = LogisticIMM()
    model.compile(keras.optimizers.SGD(0.5), jit_compile=True)
    model.train_on_batch(x, y + 1)
    assert np.isnan(model.total_metric.result())


@pytest.mark.graph
def test_adam_under_xla(rng):
    x, y, _ = _data(rng)
    kernels = []
    for jit_compile in (False, True):
        model = LogisticIMM(TASK.restricted())
        model.compile(keras.optimizers.Adam(0.1), jit_compile=jit_compile)
        model.fit(x, y, batch_size=12, epochs=3, verbose=0, shuffle=False)
        kernels.append(model.kernel.numpy())
    np.testing.assert_allclose(kernels[1], kernels[0], rtol=1e-4)


@pytest.mark.parametrize("dtype", ["float64", "mixed_bfloat16"])
def test_any_precision(rng, dtype):
    x, y, _ = _data(rng)
    kernels = []
    for each in ("float32", dtype):
        model = LogisticIMM(TASK.restricted(), dtype=each)
        model.compile(keras.optimizers.SGD(0.5))
        model.fit(x, y, batch_size=12, epochs=3, verbose=0)
        kernels.append(model.kernel.numpy())
    np.testing.assert_allclose(kernels[1], kernels[0], rtol=1e-5)
