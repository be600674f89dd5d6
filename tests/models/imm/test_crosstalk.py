"""What the graph of a step with the crosstalk gradient must not keep."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.models import SampledContexts
from tests.models.imm import imm_fixtures as fixtures


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


@pytest.mark.eager
def test_a_loss_that_a_layer_adds_counts_once():
    """In the main pass; sampled windows do not add to it, though the layer runs."""
    moved = {}
    for rate in (0.0, 0.1):
        language_model = fixtures.causal_transformer()
        logits = language_model.layers[-1]
        logits.activity_regularizer = keras.regularizers.L2(rate) if rate else None
        logits.set_weights([np.ones([8, 7]), np.ones([7])])
        model = fixtures.wrapper(
            SampledContexts(fixtures.stream(), k=2, window=4, initial_state="zero"),
            model=language_model,
            gradient="crosstalk",
            coefficient=0.5,
        )
        tokens, targets, _ = next(iter(fixtures.batches().dataset()))
        before = logits.bias.numpy()
        # Keras divides what an activity costs by the number of rows.
        said = language_model(tokens[0])
        expected = rate / 4 * tf.reduce_sum(tf.square(said))
        slope = rate / 2 * tf.reduce_sum(said, axis=(0, 1))
        logs = fixtures.step(model, (tokens[0], targets))
        total = logs["nll"][0] + 0.5 * logs["imm"][0] + float(expected)
        assert logs["loss"][0] == pytest.approx(total, rel=1e-5)
        moved[rate] = (before - logits.bias.numpy()) / 0.5
    np.testing.assert_allclose(moved[0.1] - moved[0.0], slope, rtol=1e-4)
