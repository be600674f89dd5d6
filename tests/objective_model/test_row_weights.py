"""Weights of rows, of models that have x and no y."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.layers import SymbolDecoder, SymbolEncoder, VectorQuantizer
from rlm_tf.models import VectorQuantizedVAE
from tests.models.latent.vae_fixtures import SENTENCES, X, sentence_model, symbol_model

# A few steps each: tracing graphs would take longer.
pytestmark = pytest.mark.eager

_WEIGHTS = np.array([1.0, 0.0, 0.5, 4.0], np.float32)


def _quantised():
    return VectorQuantizedVAE(
        SymbolEncoder(7, 5, seed=1),
        VectorQuantizer(2, 3, 4, seed=2),
        SymbolDecoder(7, 8, 5, num_layers=1, seed=3),
    )


_MODELS = [(symbol_model, X), (sentence_model, SENTENCES), (_quantised, X)]


def _compiled(make):
    model = make()
    model.compile(keras.optimizers.SGD(0.1))
    return model


@pytest.mark.parametrize(("make", "x"), _MODELS)
def test_arrays_and_data_sets_have_the_same_weights(make, x):
    batches = tf.data.Dataset.from_tensors((x, None, _WEIGHTS))
    expected = _compiled(make).fit(batches, validation_data=batches, verbose=0)
    for targets in (None, np.ones(4)):
        found = _compiled(make).fit(
            x,
            targets,
            sample_weight=_WEIGHTS,
            validation_data=(x, targets, _WEIGHTS),
            shuffle=False,
            verbose=0,
        )
        for name, values in expected.history.items():
            np.testing.assert_allclose(found.history[name], values, rtol=1e-5)
    without = _compiled(make).fit(x, shuffle=False, verbose=0)
    assert abs(without.history["loss"][0] - expected.history["loss"][0]) > 1e-3


def test_arguments_may_have_their_places_in_keras():
    make, x = _MODELS[0]
    named = {
        "x": x,
        "y": None,
        "batch_size": 2,
        "epochs": 2,
        "verbose": 0,
        "callbacks": None,
        "validation_split": 0.0,
        "validation_data": (x, None, _WEIGHTS),
        "shuffle": False,
        "class_weight": None,
        "sample_weight": _WEIGHTS,
    }
    expected, found = _compiled(make), _compiled(make)
    history = found.fit(*named.values()).history
    assert history == expected.fit(**named).history
    assert len(history["val_loss"]) == 2
    evaluated = found.evaluate(x, None, 2, 0, _WEIGHTS)
    assert evaluated == expected.evaluate(
        x, batch_size=2, verbose=0, sample_weight=_WEIGHTS
    )
    with pytest.raises(TypeError, match="unexpected keyword argument 'epoch'"):
        found.fit(x, epoch=2)


@pytest.mark.parametrize(("make", "x"), _MODELS)
def test_evaluations_have_weights(make, x):
    batches = tf.data.Dataset.from_tensors((x, None, _WEIGHTS))
    expected = _compiled(make).evaluate(batches, verbose=0)
    for weights in (_WEIGHTS, _WEIGHTS[:, np.newaxis]):
        found = _compiled(make).evaluate(x, sample_weight=weights, verbose=0)
        np.testing.assert_allclose(found, expected, rtol=1e-5)
    without = _compiled(make).evaluate(x, verbose=0)
    assert np.max(np.abs(np.subtract(without, expected))) > 1e-3


@pytest.mark.parametrize(("make", "x"), _MODELS)
@pytest.mark.parametrize("shape", [[5], [4, 2], [2]])
def test_other_numbers_of_weights_are_refused(make, x, shape):
    model = _compiled(make)
    batches = tf.data.Dataset.from_tensors((x, None, np.ones(shape)))
    for run in (model.fit, model.evaluate):
        with pytest.raises(ValueError, match=r"one a row, \[4\], found"):
            run(batches, verbose=0)
