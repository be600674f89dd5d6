"""Perplexity and bits per character of a corpus, however it is cut into batches."""

from __future__ import annotations

import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.metrics import BitsPerCharacter, Perplexity


def expected(metric_class, nats_per_token):
    if metric_class is Perplexity:
        return math.exp(nats_per_token)
    return nats_per_token / math.log(2.0)


@pytest.mark.parametrize("metric_class", [Perplexity, BitsPerCharacter])
def test_batches_of_any_size_give_the_corpus_value(rng, metric_class):
    nats = rng.uniform(1.0, 6.0, size=(5, 4)).astype("float32")
    weights = rng.integers(2, size=(5, 4)).astype("float32")
    metric = metric_class()
    for part in (np.s_[:1], np.s_[1:, :1], np.s_[1:, 1:]):
        metric.update_state(nats[part], sample_weight=weights[part])
    mean = float(np.sum(nats * weights) / np.sum(weights))
    np.testing.assert_allclose(metric.result(), expected(metric_class, mean), rtol=1e-5)


@pytest.mark.parametrize(
    ("metric_class", "value"), [(Perplexity, 4.0), (BitsPerCharacter, 2.0)]
)
def test_uniform_over_four_types(metric_class, value):
    metric = metric_class()
    metric.update_state(tf.fill([2, 3], math.log(4.0)))
    np.testing.assert_allclose(metric.result(), value, rtol=1e-6)
    metric.reset_state()
    metric.update_state(tf.zeros([1]))
    np.testing.assert_allclose(metric.result(), expected(metric_class, 0.0), rtol=1e-6)


@pytest.mark.parametrize("metric_class", [Perplexity, BitsPerCharacter])
def test_config_round_trip(metric_class):
    metric = metric_class(name="other", dtype="float64")
    copy = keras.metrics.deserialize(keras.metrics.serialize(metric))
    assert type(copy) is metric_class
    assert copy.get_config() == metric.get_config()
    assert copy.name == "other"
    assert copy.variables[0].dtype == "float64"
