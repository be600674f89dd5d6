"""Lists of gradients: sums that are the same to the bit in every run."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf import gradients


@pytest.mark.parametrize("kind", ["scalars", "norm"])
def test_sums_are_not_of_operations_that_choose_their_order(kind):
    shape = [] if kind == "scalars" else [3, 2]
    compute = {"scalars": gradients.ordered_sum, "norm": gradients.global_norm}[kind]
    rng = np.random.default_rng(0)
    values = [rng.normal(size=shape).astype(np.float32) for _ in range(7)]
    function = tf.function(lambda *terms: compute(terms))
    traced = function.get_concrete_function(*map(tf.constant, values))
    kinds = {operation.type for operation in traced.graph.get_operations()}
    # Chains of additions become AddN, whose order depends on what else was computed.
    assert not kinds & {"AddN", "Add", "AddV2"}
    expected = np.sum(values) if kind == "scalars" else np.linalg.norm(values)
    assert function(*values).numpy() == pytest.approx(expected, rel=1e-5)
