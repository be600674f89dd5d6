"""What the graph of a step with the crosstalk gradient must not keep."""

from __future__ import annotations

import pytest
import tensorflow as tf

from rlm_tf.models import SampledContexts
from tests.models import imm_fixtures as fixtures


@pytest.mark.parametrize("gradient", ["direct", "crosstalk"])
def test_no_loop_of_a_step_collects_tensors_of_its_iterations(gradient):
    model = fixtures.wrapper(
        SampledContexts(fixtures.stream(), k=3, window=6), gradient=gradient
    )
    element = next(iter(fixtures.batches().dataset()))
    step = tf.function(lambda: model.train_step(element), autograph=False)
    graph = step.get_concrete_function().graph.as_graph_def()
    operations = [
        node.op for function in graph.library.function for node in function.node_def
    ]
    # A loop that collects what its gradient needs pushes it onto lists.
    assert "TensorListPushBack" not in operations
    assert any("While" in operation for operation in operations)
