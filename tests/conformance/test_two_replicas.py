"""Two replicas take the steps that one device takes, for every model that trains.

Weights are equal but for the rounding of a sum of two: replicas draw the noise of their
rows, and sums of losses and weights go over all replicas.
"""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf import models
from rlm_tf.training import free_graphs_on_exit
from tests.conformance.public_classes import MODELS, STREAM, wrapper
from tests.conformance.row import Row
from tests.models.latent.vae_fixtures import SENTENCES, X, sentence_model, symbol_model
from tests.replica_steps import assert_equal, assert_two_replicas_equal_one

# Tracing takes five times as long as the steps.
pytestmark = [pytest.mark.eager, pytest.mark.landing]

_ROWS = {row.name: row for row in MODELS}


def _batches(row: Row) -> list:
    """Two batches of four rows, in which the replicas have different ones."""
    orders = ([0, 1, 1, 1], [1, 0, 0, 0])
    return [
        tf.nest.map_structure(lambda v, o=order: np.asarray(v)[o], row.batch)
        for order in orders
    ]


@pytest.mark.parametrize("gradient", ["direct", "crosstalk"])
@pytest.mark.landing
def test_sampled_contexts(two_replicas, gradient):
    def make():
        contexts = models.SampledContexts(STREAM, k=3, window=3)
        return wrapper(contexts, gradient=gradient, clip_norm=0.1)

    row = _ROWS["InducedModelMatching"]
    assert_two_replicas_equal_one(two_replicas, make, _batches(row), rate=0.5)


@pytest.mark.parametrize(
    ("estimator", "make", "x", "options"),
    [
        ("dreg", sentence_model, SENTENCES, {"shared_dropout": True}),
        ("dreg", symbol_model, X, {}),
        ("reinforce", symbol_model, X, {"baseline": "moving_average"}),
    ],
)
def test_other_estimators(two_replicas, estimator, make, x, options):
    weights = np.array([1.0, 2.0, 0.5, 1.0], np.float32)
    assert_two_replicas_equal_one(
        two_replicas,
        lambda: make(estimator, **options),
        [(x, np.zeros(4), weights)] * 2,
        rate=0.5,
    )


@pytest.mark.graph
@pytest.mark.parametrize("name", _ROWS)
@free_graphs_on_exit()  # Of all models together they are gigabytes.
def test_every_model_under_fit(two_replicas, name):
    """In graphs, where replicas cannot ask each other inside of loops and branches.

    In-batch contexts pool what their replica has; what they promise is in
    `tests/models/imm/test_in_batch_contexts.py`.
    """
    row, trained = _ROWS[name], []
    batches = tf.nest.map_structure(lambda *v: np.concatenate(v), *_batches(row))
    for strategy in (tf.distribute.get_strategy(), two_replicas):
        with strategy.scope():
            model = row.make()
            model.compile(keras.optimizers.SGD(0.1))
        data = tf.data.Dataset.from_tensor_slices(batches).batch(4)
        history = model.fit(data, verbose=0, shuffle=False).history
        assert np.isfinite(history["loss"]).all()
        trained.append(model)
    if name != "InducedModelMatching":
        assert_equal(two_replicas, row.make(), *trained)
