"""The regularised language model in wrappers, in half precision."""

from __future__ import annotations

import math

import keras
import numpy as np
import pytest

from rlm_tf import layers
from rlm_tf.data import contiguous_batches
from rlm_tf.models import (
    InBatchContexts,
    InducedModelMatching,
    SampledContexts,
)
from rlm_tf.restricted import KneserNey
from tests.models.language.recurrent_fixtures import V, compile_and_fit, dataset
from tests.models.language.recurrent_fixtures import make_regularized as make

H = 4


CELLS = {
    "mogrifier": layers.MogrifierLSTMCell(H, 2, 1),
    "rlstm": layers.RewiredLSTMCell(H, state_dropout=0.2),
    "mogrifier rlstm": layers.MogrifierCell(layers.RewiredLSTMCell(H), 2),
    "mlstm": layers.MultiplicativeLSTMCell(H),
    "gru": layers.GRUCell(H),
    "mogrifier elman": layers.MogrifierCell(layers.ElmanCell(H), 3, 1),
}


def _cells() -> list:
    """Names of all cells; most of them are for landing only."""
    rare = {"mogrifier rlstm", "mogrifier elman", "mlstm", "gru"}
    return [
        pytest.param(name, marks=[pytest.mark.landing] if name in rare else [])
        for name in CELLS
    ]


@pytest.mark.parametrize("name", _cells())
def test_induced_model_matching_wraps_every_cell(name):
    text = np.random.default_rng(1).integers(V, size=120) // 3
    model = InducedModelMatching(
        make(CELLS[name], num_layers=1, dropout_samples=2, layer_dropout=0.2),
        KneserNey().fit(text, V),
        InBatchContexts(min_count=1, bank_size=30),
        coefficient=0.5,
    )
    model.compile(keras.optimizers.Adam(0.03, beta_1=0.0))
    batches = contiguous_batches(text, 4, 5, prefix=0)
    history = model.fit(batches.dataset(), epochs=6, shuffle=False, verbose=0).history
    for term in ("nll", "imm"):
        assert history[term][-1] < history[term][0] - 0.1


@pytest.mark.eager
def test_published_sampler_works_with_samples_of_dropout():
    text = np.random.default_rng(1).integers(V, size=60)
    model = InducedModelMatching(
        make(dropout_samples=2, layer_dropout=0.2, num_layers=1),
        KneserNey().fit(text, V),
        SampledContexts(text, k=2, window=3),
        coefficient=0.5,
    )
    model.compile(keras.optimizers.SGD(0.1))
    batches = contiguous_batches(text, 4, 5, prefix=0)
    history = model.fit(batches.dataset(), shuffle=False, verbose=0).history
    assert np.isfinite(history["imm"]).all()


@pytest.mark.slow
@pytest.mark.landing
@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_half_precision_trains(rng, policy):
    data = dataset(rng)
    options = {
        "cell": layers.MogrifierLSTMCell(H, 2, 1, state_dropout=0.1),
        "num_layers": 2,
        "mixture_components": 2,
        "dropout_samples": 2,
        "seed": 3,
        "clip_norm": 1.0,
    }
    history = compile_and_fit(make(dtype=policy, **options), data, epochs=3)
    expected = compile_and_fit(make(**options), data, epochs=3)
    np.testing.assert_allclose(history["nll"], expected["nll"], rtol=3e-2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"cell": keras.layers.LSTMCell(3)}, "`cell` must be an rlm_tf.layers.Hidden"),
        ({"connections": "dense"}, "`connections` must be one of stacked, skip"),
        ({"reset_rate": 1.0}, r"`reset_rate` must lie in \[0, 1\), found 1.0"),
        ({"mixture_components": 0}, "`mixture_components` must be an integer >= 1"),
        ({"dropout_samples": 0}, "`dropout_samples` must be an integer >= 1"),
        ({"l2": -1.0}, "`l2` must be finite and at least 0"),
    ],
)
def test_mistakes_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        make(**arguments)


@pytest.mark.eager
@pytest.mark.landing
def test_a_wrapper_takes_over_clipping_penalty_and_scale(rng):
    options = {"clip_norm": 0.02, "loss_scale": 3.0, "l2": 0.3}
    data = dataset(rng, steps=2)
    restricted = KneserNey(2).fit(rng.integers(V, size=200), V)
    trained = []
    for coefficient in (None, 0.0):
        keras.utils.set_random_seed(1)
        inner = model = make(**options)
        if coefficient is not None:
            contexts = InBatchContexts(min_count=1)
            model = InducedModelMatching(inner, restricted, contexts, coefficient)
            assert {name: getattr(model, name) for name in options} == options
        compile_and_fit(model, data, epochs=1)
        trained.append(inner.get_weights())
    for alone, wrapped in zip(*trained, strict=True):
        np.testing.assert_allclose(wrapped, alone, atol=1e-6)
    own = InducedModelMatching(inner, restricted, None, clip_norm=math.inf, l2=0.0)
    assert (own.clip_norm, own.loss_scale, own.l2) == (math.inf, 3.0, 0.0)
