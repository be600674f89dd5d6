"""Gradients of linear softmax losses in half precision, near an optimum.

There the gradient of a frequent word's row is a small difference of two large sums.
"""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.objectives.cross_entropy import linear_cross_entropy
from rlm_tf.objectives.cross_entropy_with_imm import linear_cross_entropy_with_imm
from rlm_tf.objectives.in_batch import Groups

N, D, V, GROUPS = 3000, 8, 2000, 50


@pytest.fixture(scope="module")
def problem():
    """Targets drawn by Zipf's law, and a model that nearly says so."""
    rng = np.random.default_rng(5)
    probs = 1 / np.arange(1, V + 1)
    probs /= probs.sum()
    features = rng.normal(size=(N, D)) * 0.3
    features[:, 0] = 1.0
    kernel = rng.normal(size=(V, D)) * 0.1
    kernel[:, 0] = np.log(probs)
    targets = tf.constant(rng.choice(V, size=N, p=probs))
    rows = rng.permutation(N)[: N // 3].astype(np.int32)
    groups = Groups(
        tf.constant(rows),
        tf.constant(np.arange(rows.size, dtype=np.int32) % GROUPS),
        tf.constant(np.tile(probs, (GROUPS, 1))),
    )
    return (features, kernel, np.zeros(V)), targets, groups


def _cross_entropy(operands, targets, groups):
    del groups
    return tf.reduce_mean(linear_cross_entropy(*operands, targets).loss)


def _joint(operands, targets, groups):
    main, induced = linear_cross_entropy_with_imm(*operands, targets, groups)
    return tf.reduce_mean(main) + 0.2 * tf.reduce_mean(induced)


@pytest.mark.parametrize("loss", [_cross_entropy, _joint])
@pytest.mark.parametrize(("dtype", "bound"), [("bfloat16", 0.01), ("float16", 0.002)])
def test_gradients_near_an_optimum(problem, loss, dtype, bound):
    operands, targets, groups = problem
    rounded = [tf.cast(tf.constant(operand), dtype) for operand in operands]

    def gradients(operands, scale):
        with tf.GradientTape() as tape:
            tape.watch(operands)
            total = scale * loss(operands, targets, groups)
        found = tape.gradient(total, operands)
        return [tf.cast(each, tf.float64).numpy() / scale for each in found]

    exact = gradients([tf.cast(operand, tf.float64) for operand in rounded], 1.0)
    # Half precision is used with a scaled loss, if it is float16.
    for found, expected in zip(gradients(rounded, 1024.0), exact, strict=True):
        error = np.linalg.norm(found - expected) / np.linalg.norm(expected)
        assert error < bound
        if expected.shape == (V, D):
            most_frequent = np.linalg.norm((found - expected)[0])
            assert most_frequent < bound * np.linalg.norm(expected[0])
