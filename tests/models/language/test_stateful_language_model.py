"""The two memories of a recurrent language model."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tests.models.language.recurrent_fixtures import (
    B,
    T,
    compile_and_fit,
    dataset,
    flat,
    make,
    tokens,
)

# Tracing takes longer than the few steps of most tests.
pytestmark = pytest.mark.eager


def test_windows_of_a_stream_equal_the_whole_stream(rng):
    model = make()
    x = tokens(rng)[0]
    start = tf.ones([B], tf.int32)
    first = model((x[:, :3], start))
    second = model((x[:, 3:], 0 * start))
    actual = np.concatenate([first, second], axis=1)
    np.testing.assert_allclose(actual, model(x), rtol=1e-5, atol=1e-6)
    _, states = model.forward(x, model.zero_states(B))
    for state, expected in zip(flat(model.carried_states()), flat(states), strict=True):
        np.testing.assert_allclose(state, expected, rtol=1e-5, atol=1e-6)


def test_flagged_rows_forget_and_the_others_do_not(rng):
    model = make()
    x, y = tokens(rng, 2)
    model((x, np.ones(B, "int32")))
    logits = model((y, np.array([0, 1, 0, 1], "int32")))
    whole = model(np.concatenate([x, y], axis=1))[:, T:]
    np.testing.assert_allclose(logits[0], whole[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(logits[1::2], model(y)[1::2], rtol=1e-5, atol=1e-6)
    assert not np.allclose(logits[0], model(y)[0], atol=1e-4)


def test_evaluation_does_not_touch_the_state_of_training(rng):
    model = make()
    x, y = tokens(rng, 2)
    ones = np.ones(B, "int32")
    model((x, ones), training=True)
    before = flat(model.carried_states(training=True))
    model((y, ones), training=False)
    model(y, training=True)
    after = flat(model.carried_states(training=True))
    np.testing.assert_array_equal(after, before)
    assert not np.array_equal(flat(model.carried_states(training=False)), before)


@pytest.mark.parametrize(
    "jit",
    [
        False,
        pytest.param(
            True, marks=[pytest.mark.slow, pytest.mark.landing, pytest.mark.graph]
        ),
    ],
)
def test_validation_inside_fit_changes_nothing(rng, jit):
    data, validation = dataset(rng), dataset(rng, steps=2, batch=3)
    plain, validated = make(seed=1), make(seed=1)
    compile_and_fit(plain, data, jit_compile=jit)
    compile_and_fit(validated, data, validation_data=validation, jit_compile=jit)
    for a, b in zip(plain.weights, validated.weights, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(
        flat(plain.carried_states(training=True)),
        flat(validated.carried_states(training=True)),
    )


def test_batch_size_may_change_with_new_streams_only(rng):
    model = make()
    model.compile()
    for size in (4, 2, 3, 2, 1):
        result = model.evaluate(dataset(rng, 2, size), verbose=0, return_dict=True)
        assert np.isfinite(result["nll"])
    with pytest.raises(tf.errors.InvalidArgumentError, match="batch size changes"):
        model((tokens(rng)[0], np.zeros(B, "int32")))


@pytest.mark.graph
def test_compiled_evaluation_is_told_a_new_batch_size(rng):
    model = make()
    model.compile(jit_compile=True)
    for size in (4, 2, 4):
        model.reset_states(size)
        result = model.evaluate(dataset(rng, 2, size), verbose=0, return_dict=True)
        assert np.isfinite(result["nll"])


def test_checkpoint_keeps_the_carried_state(rng, tmp_path):
    model, other = make(), make(seed=5)
    x, y = tokens(rng, 2)
    for training in (False, True):
        model((x, np.ones(B, "int32")), training=training)
    path = tf.train.Checkpoint(model=model).write(str(tmp_path / "checkpoint"))
    tf.train.Checkpoint(model=other).read(path).assert_existing_objects_matched()
    for a, b in zip(model.weights, other.weights, strict=True):
        np.testing.assert_array_equal(a, b)
    zeros = np.zeros(B, "int32")
    for training in (False, True):
        np.testing.assert_array_equal(
            other((y, zeros), training=training), model((y, zeros), training=training)
        )
