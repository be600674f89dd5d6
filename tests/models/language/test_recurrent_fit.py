"""The recurrent language model under fit() and evaluate(), on one and two devices."""

from __future__ import annotations

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.models.language.recurrent_fixtures import (
    B,
    T,
    V,
    compile_and_fit,
    dataset,
    make,
)

# Tracing takes longer than the few steps of most tests.
pytestmark = pytest.mark.eager


@pytest.mark.graph
@pytest.mark.parametrize(
    ("policy", "jit", "steps_per_execution"),
    [
        pytest.param("float32", False, 1, marks=pytest.mark.landing),
        ("float32", True, 3),
        pytest.param("mixed_bfloat16", True, 1, marks=pytest.mark.landing),
        pytest.param("mixed_float16", False, 2, marks=pytest.mark.landing),
    ],
)
def test_fit_learns_and_agrees(rng, policy, jit, steps_per_execution):
    data = dataset(rng)
    model = make(seed=2, clip_norm=1.0, dtype=policy)
    history = compile_and_fit(
        model,
        data,
        epochs=3,
        validation_data=data,
        jit_compile=jit,
        steps_per_execution=steps_per_execution,
    )
    assert history["nll"][-1] < history["nll"][0]
    np.testing.assert_allclose(history["perplexity"], np.exp(history["nll"]), rtol=1e-4)
    reference = make(seed=2, clip_norm=1.0)
    expected = compile_and_fit(reference, data, epochs=3, validation_data=data)
    tolerance = 1e-4 if policy == "float32" else 3e-2
    for name in ("nll", "val_nll"):
        np.testing.assert_allclose(history[name], expected[name], rtol=tolerance)


def test_training_step_is_plain_gradient_descent(rng):
    """Gradient of the mean cross-entropy, in which weight 0 does not count."""
    data = dataset(rng, steps=1)
    weights = rng.integers(2, size=(1, B, T)).astype("float32")
    ((x, start), y, _) = next(iter(data))
    data = tf.data.Dataset.from_tensors(((x, start), y, weights[0]))
    model, other = make(), make()
    compile_and_fit(model, data, epochs=1)
    variables = [weight.value for weight in other.trainable_weights]
    with tf.GradientTape() as tape:
        nll = tf.nn.sparse_softmax_cross_entropy_with_logits(y, other(x))
        loss = tf.reduce_sum(nll * weights[0]) / np.sum(weights)
    for weight, variable, gradient in zip(
        model.trainable_weights, variables, tape.gradient(loss, variables), strict=True
    ):
        np.testing.assert_allclose(weight, variable - 0.5 * gradient, atol=1e-6)


@pytest.mark.slow
@pytest.mark.landing
@pytest.mark.graph
def test_two_replicas_equal_one_device(rng, two_replicas):
    data = dataset(rng, steps=3)
    with two_replicas.scope():
        model = make(clip_norm=0.5)
        model.compile(keras.optimizers.SGD(0.5), jit_compile=False)
    history = model.fit(
        data, epochs=2, validation_data=data, shuffle=False, verbose=0
    ).history
    single = make(clip_norm=0.5)
    expected = compile_and_fit(single, data, validation_data=data)
    for name in ("nll", "val_nll"):
        np.testing.assert_allclose(history[name], expected[name], rtol=1e-5)
    for a, b in zip(model.weights, single.weights, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), atol=1e-6)
    for value, one in zip(
        model.training_state.values, single.training_state.values, strict=True
    ):
        rows = tf.concat(two_replicas.experimental_local_results(value), axis=0)
        np.testing.assert_allclose(rows, one, atol=1e-6)


def test_corpus_values_do_not_depend_on_the_length_of_windows(rng):
    model = make()
    model.compile()
    x = rng.integers(V, size=(2, 13)).astype("int32")
    values = []
    for lengths in ([13], [1, 2, 10]):
        ends = np.cumsum([0, *lengths])
        windows = [
            (
                (x[:, a:b], np.full(2, int(a == 0), "int32")),
                np.roll(x, -1, axis=1)[:, a:b],
                np.ones((2, b - a), "float32"),
            )
            for a, b in itertools.pairwise(ends)
        ]
        spec = (
            (tf.TensorSpec([2, None], "int32"), tf.TensorSpec([2], "int32")),
            tf.TensorSpec([2, None], "int32"),
            tf.TensorSpec([2, None]),
        )
        data = tf.data.Dataset.from_generator(
            lambda windows=windows: iter(windows), output_signature=spec
        )
        values.append(model.evaluate(data, verbose=0, return_dict=True))
    for name in ("loss", "nll", "perplexity"):
        np.testing.assert_allclose(values[0][name], values[1][name], rtol=1e-5)
