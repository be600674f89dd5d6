"""Two replicas take the steps that one device takes, for every model that trains.

Weights are equal but for the rounding of a sum of two: replicas draw the noise of their
rows, and sums of losses and weights go over all replicas. What `fit()` adds to that is
tested with the models.
"""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf import models
from tests.conformance.public_classes import MODELS, STREAM, wrapper
from tests.conformance.row import Row
from tests.models.vae_fixtures import SENTENCES, X, sentence_model, symbol_model
from tests.replica_steps import assert_two_replicas_equal_one

# Tracing takes five times as long as the steps.
pytestmark = pytest.mark.eager

_ROWS = {row.name: row for row in MODELS}


def _batches(row: Row) -> list:
    """Two batches of four rows, in which the replicas have different ones."""
    orders = ([0, 1, 1, 1], [1, 0, 0, 0])
    return [
        tf.nest.map_structure(lambda v, o=order: np.asarray(v)[o], row.batch)
        for order in orders
    ]


def _parameters() -> list:
    """Returns the names of all models whose promise it is.

    In-batch contexts pool what their replica has; what they promise is in
    `tests/models/test_in_batch_contexts.py`. TensorFlow gathers rows of several
    replicas, as the matching of neighbours does, in graphs alone.
    """
    gather = {"LogisticIMM", "NeighborModelMatching"}
    return [
        pytest.param(name, marks=[pytest.mark.graph] if name in gather else [])
        for name in sorted(_ROWS.keys() - {"InducedModelMatching"})
    ]


@pytest.mark.parametrize("name", _parameters())
def test_every_model(two_replicas, name):
    row = _ROWS[name]
    assert_two_replicas_equal_one(two_replicas, row.make, _batches(row))


@pytest.mark.parametrize("gradient", ["direct", "crosstalk"])
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
