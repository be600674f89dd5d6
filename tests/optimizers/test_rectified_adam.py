"""RectifiedAdam against traces computed elsewhere, and beside Adam."""

from __future__ import annotations

import json
import pathlib

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.optimizers import RectifiedAdam

TRACES = json.loads(
    (pathlib.Path(__file__).parents[1] / "references/radam_traces.json").read_text(
        "utf-8"
    )
)


def run(optimizer, gradients, dtype="float64"):
    weight = keras.Variable(1.0, dtype=dtype)
    found = []
    step = tf.function(
        lambda g: optimizer.apply([g], [weight]), jit_compile=False, autograph=False
    )
    optimizer.build([weight])
    for gradient in gradients:
        step(tf.constant(gradient, dtype))
        found.append(float(weight.numpy()))
    return found


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("beta_1, beta_2", [(0.0, 0.999), (0.9, 0.999), (0.0, 0.9)])
def test_trace(beta_1, beta_2, dtype):
    key = f"beta1={beta_1:g},beta2={beta_2:g}"
    expected = [row[3] for row in TRACES[key]]
    optimizer = RectifiedAdam(TRACES["lr"], beta_1, beta_2, TRACES["eps"])
    found = run(optimizer, TRACES["grads"], dtype)
    # Learning rates are in single precision.
    np.testing.assert_allclose(found, expected, rtol=2e-6)


def test_published_code_waits_one_step_more():
    gradients = TRACES["grads"]
    paper = run(RectifiedAdam(0.1, 0.0), gradients)
    code = run(RectifiedAdam(0.1, 0.0, threshold=5), gradients)
    np.testing.assert_allclose(paper[:4], code[:4])
    # The fifth step: by the paper 0.0173 of an adaptive one, by the code a plain one.
    assert abs(code[4] - (code[3] - 0.1 * gradients[4])) < 1e-6
    assert abs(paper[4] - code[4]) > 0.05


def test_gradients_of_some_rows_are_those_of_all():
    """A row that a batch does not read still moves by what it remembers."""
    found = []
    for sparse in (True, False):
        optimizer = RectifiedAdam(0.1)
        table = keras.Variable(np.ones([4, 2]), dtype="float64")
        optimizer.build([table])
        rng = np.random.default_rng(3)
        for _ in range(8):
            rows = tf.constant(rng.integers(4, size=3))
            values = tf.constant(rng.normal(size=[3, 2]))
            slices = tf.IndexedSlices(values, rows, tf.constant([4, 2], tf.int64))
            gradient = slices if sparse else tf.convert_to_tensor(slices)
            optimizer.apply([gradient], [table])
        found.append(table.numpy())
    np.testing.assert_allclose(*found, rtol=1e-9)


def test_no_momentum_no_variables_for_it():
    weight = keras.Variable(np.ones(3, np.float32))
    without, with_momentum = RectifiedAdam(beta_1=0.0), RectifiedAdam()
    for optimizer in (without, with_momentum):
        optimizer.build([weight])
    assert len(with_momentum.variables) == len(without.variables) + 1


@pytest.mark.slow
def test_goes_over_into_adam():
    """After many steps r_t is 1, and the steps are Adam's."""
    rng = np.random.default_rng(0)
    gradients = rng.normal(size=3000)
    ours = run(RectifiedAdam(1e-3, 0.5, 0.9), gradients)
    adam = run(keras.optimizers.Adam(1e-3, 0.5, 0.9, 1e-8), gradients)
    late = np.diff(ours)[-50:], np.diff(adam)[-50:]
    np.testing.assert_allclose(*late, rtol=1e-3, atol=1e-9)


def test_config_round_trip():
    optimizer = RectifiedAdam(0.02, 0.1, 0.99, 1e-5, 5, weight_decay=0.1)
    copy = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert copy.get_config() == optimizer.get_config()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"beta_1": 1.0}, "`beta_1` must lie in"),
        ({"beta_2": 0.0}, "`beta_2` must lie in"),
        ({"threshold": 6}, "`threshold` must be 4 or 5"),
    ],
)
def test_mistakes_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        RectifiedAdam(**arguments)
