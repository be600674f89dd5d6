"""MonteCarloVAE: under `fit()`, on replicas, in files; mistakes."""

from __future__ import annotations

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.layers import (
    LSTMCell,
    NormalLatents,
    SentenceDecoder,
    SentenceEncoder,
    SymbolDecoder,
    SymbolEncoder,
)
from rlm_tf.models import MonteCarloVAE
from rlm_tf.objectives import monte_carlo
from tests.models.latent.vae_fixtures import (
    SENTENCES,
    X,
    assert_replicas_equal_one,
    sentence_model,
    symbol_model,
)
from tests.replica_steps import assert_two_replicas_equal_one

# A few steps each: tracing graphs would take longer.
pytestmark = pytest.mark.eager

_WEIGHTS = np.array([1.0, 2.0, 0.5, 1.0], np.float32)


# === Under fit() ===


# Conformance has the steps of more models, without `fit()`.
@pytest.mark.slow
@pytest.mark.landing
@pytest.mark.parametrize(
    ("estimator", "make", "x"),
    [
        pytest.param("dreg", symbol_model, X, marks=pytest.mark.graph),
        ("vimco", sentence_model, SENTENCES),
    ],
)
def test_two_replicas_equal_one(two_replicas, estimator, make, x):
    data = tf.data.Dataset.from_tensor_slices((x, np.zeros(4), _WEIGHTS)).batch(4)
    one = functools.partial(make, estimator)
    assert_replicas_equal_one(two_replicas, one, data, epochs=3)


@pytest.mark.parametrize(
    ("policy", "estimator"),
    [
        pytest.param("mixed_bfloat16", "dreg", marks=pytest.mark.landing),
        pytest.param("mixed_float16", "dreg", marks=pytest.mark.landing),
        ("float64", "dreg"),
        pytest.param("float64", "elbo", marks=pytest.mark.landing),
    ],
)
def test_other_precisions(policy, estimator):
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        model = sentence_model(estimator, objective="renyi", alpha=3.0)
        samples = model.sample(SENTENCES, 3)
        wide = tf.float64 if policy == "float64" else tf.float32
        assert {part.dtype for part in samples} == {wide}
        model.compile(keras.optimizers.Adam(0.01))
        history = model.fit(SENTENCES, epochs=3, verbose=0, batch_size=2).history
    finally:
        keras.config.set_dtype_policy(before)
    assert np.isfinite(history["loss"]).all()


def test_metrics_are_what_they_are_called():
    model = symbol_model("vimco", lambda_=0.5)
    model.compile()
    data = tf.data.Dataset.from_tensors((X, None, _WEIGHTS))
    model(X)
    found = model.evaluate(data, verbose=0, return_dict=True)
    again = symbol_model("vimco", lambda_=0.5)
    with again.evaluation_draws():
        samples = again.sample(X, 3)
    loss, extra = monte_carlo.kl_objective(*samples[1:], lambda_=0.5)
    for name, values in (
        ("objective", loss),
        ("loss", loss),
        ("bound", -extra.log_evidence),
        ("kl", extra.kl_divergence),
        ("representational_kl", extra.representational_kl),
    ):
        expected = np.average(values, weights=_WEIGHTS)
        assert found[name] == pytest.approx(expected, rel=1e-5), name


def test_validation_leaves_training_as_it_is():
    weights = []
    for validation_data in (None, (X[:3], None)):
        model = symbol_model("vimco")
        model.compile(keras.optimizers.SGD(0.5))
        options = {"epochs": 2, "shuffle": False, "verbose": 0}
        model.fit(X, validation_data=validation_data, **options)
        weights.append(model.get_weights())
    for without, validated in zip(*weights, strict=True):
        np.testing.assert_array_equal(validated, without)


def test_evaluation_gives_the_same_again(two_replicas):
    data = tf.data.Dataset.from_tensor_slices(X).batch(2)
    with two_replicas.scope():
        model = symbol_model("vimco")
    state = model.seed_generator.state
    before = np.array(state)
    with model.evaluation_draws():
        assert np.any(np.array(state) != before)
    np.testing.assert_array_equal(state, before)
    model = symbol_model("vimco")
    model.compile(keras.optimizers.SGD(0.0))
    first = model.evaluate(data, verbose=0)
    model.fit(data, verbose=0)
    assert model.evaluate(data, verbose=0) == first
    # The draws of one batch are not those of the next.
    same = tf.data.Dataset.from_tensors(X)
    assert model.evaluate(same, verbose=0) != model.evaluate(same.repeat(2), verbose=0)
    found = []
    for _ in range(2):
        model.reset_metrics()
        found.append(model.test_on_batch(X))
    assert found[0] == found[1]


@pytest.mark.parametrize("estimator", ["reparameterised", "dreg", "vimco", "elbo"])
def test_rows_without_weight_may_be_impossible(estimator):
    class Decoder(SymbolDecoder):
        def call(self, latents, symbols, training=False):
            found = super().call(latents, symbols)
            return tf.where(symbols == 6, -np.inf, found)

    model = MonteCarloVAE(
        SymbolEncoder(7, 5, seed=1),
        NormalLatents(4),
        Decoder(7, 4, 5),
        estimator=estimator,
        num_samples=3,
    )
    model.compile(keras.optimizers.SGD(0.1))
    data = tf.data.Dataset.from_tensors((X, None, (X != 6).astype(np.float32)))
    found = model.evaluate(data, verbose=0, return_dict=True)
    assert all(np.isfinite(value) for value in found.values())
    found = model.fit(data, verbose=0).history
    assert all(np.isfinite(value) for value in found.values())
    assert all(np.isfinite(weight).all() for weight in model.get_weights())


def test_two_replicas_of_one_row_equal_one(two_replicas):
    """Each replica draws for its own row."""
    batches = [(X[:2],), (X[2:],)]
    assert_two_replicas_equal_one(two_replicas, symbol_model, batches, rate=0.5)


@pytest.mark.slow
@pytest.mark.landing
@pytest.mark.graph
def test_two_replicas_of_other_sizes_equal_one(two_replicas):
    """The last three rows are two and one; masks and draws are those of all three."""
    x = np.concatenate([SENTENCES, SENTENCES[:3]])
    data = tf.data.Dataset.from_tensor_slices(x).batch(4)
    assert_replicas_equal_one(two_replicas, sentence_model, data)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.uint8, np.uint32, np.int64])
def test_ids_of_any_integer_type(dtype):
    for make, x in ((symbol_model, X), (sentence_model, SENTENCES)):
        x = np.maximum(x, 0) if np.dtype(dtype).kind == "u" else x
        for expected, found in zip(
            make().sample(x, 2), make().sample(x.astype(dtype), 2), strict=True
        ):
            np.testing.assert_array_equal(found, expected)


def test_parts_with_one_seed_begin_with_different_weights():
    for encoder, decoder in (
        (SymbolEncoder(7, 5), SymbolDecoder(7, 5, 5)),
        (SentenceEncoder(7, LSTMCell(5)), SentenceDecoder(7, 5, LSTMCell(5))),
    ):
        for own in encoder.trainable_variables:
            for other in decoder.trainable_variables:
                same = own.shape == other.shape and np.array_equal(own, other)
                # Biases are constant.
                assert not same or len(own.shape) == 1, own.path


@pytest.mark.graph
@pytest.mark.parametrize(
    "make", [symbol_model, pytest.param(sentence_model, marks=pytest.mark.landing)]
)
def test_files_and_graphs(tmp_path, make):
    x = X if make is symbol_model else SENTENCES
    model = make("dreg", num_samples=(3, 2), objective="renyi", alpha=2.0)
    model.compile(keras.optimizers.Adam(0.01))
    model.fit(x, verbose=0, batch_size=2, steps_per_epoch=2)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    for a, b in zip(loaded.weights, model.weights, strict=True):
        np.testing.assert_array_equal(a, b)
    assert loaded.num_samples == (3, 2) and loaded.alpha == 2.0
    for name, values in loaded(x).items():
        np.testing.assert_allclose(values, model(x)[name], rtol=1e-6)


# === Mistakes ===


def test_mistakes_are_named():
    def make(**options):
        return MonteCarloVAE(
            SymbolEncoder(5, 4), NormalLatents(2), SymbolDecoder(5, 2, 4), **options
        )

    for options, message in (
        ({"estimator": "other"}, "`estimator` must be one of elbo"),
        ({"objective": "elbo"}, "`objective` must be"),
        ({"alpha": -1.0}, "`alpha` must"),
        ({"num_samples": 0}, "`num_samples` must be an integer >= 1"),
        ({"num_samples": (2, 0)}, r"`num_samples\[1\]` must be"),
        ({"estimator": "vimco", "num_samples": 1}, "VIMCO with one sample"),
        ({"estimator": "elbo", "num_samples": (2, 3)}, "one number of samples"),
        ({"num_samples": (3, 2, 1)}, r"one integer or two, found \(3, 2, 1\)"),
        ({"num_samples": 3.0}, "`num_samples` must be an integer"),
        ({"baseline": "none"}, "`baseline` of 'dreg' must be None"),
        ({"objective": "iwae", "lambda_": 0.9}, "`lambda_` is of the objectives kl"),
        ({"alpha": 2.0}, "`alpha` is of the objectives alpha_iwae, renyi, power"),
    ):
        with pytest.raises(ValueError, match=message):
            make(**options)
    with pytest.raises(ValueError, match="`encoder` must be a Keras layer or model"):
        MonteCarloVAE(None, NormalLatents(2), SymbolDecoder(5, 2, 4))
    with pytest.raises(ValueError, match=r"`decoder` must be .* found str"):
        MonteCarloVAE(SymbolEncoder(5, 4), NormalLatents(2), "decoder")
    with pytest.raises(ValueError, match=r"latents of 3 entries, `latents` makes 2"):
        MonteCarloVAE(SymbolEncoder(5, 4), NormalLatents(2), SymbolDecoder(5, 3, 4))
    discrete = symbol_model("vimco").latents
    with pytest.raises(ValueError, match="differentiates samples"):
        MonteCarloVAE(SymbolEncoder(5, 4), discrete, SymbolDecoder(5, 6, 4))
    with pytest.raises(ValueError, match=r"`latents` must be an rlm_tf.layers.Latents"):
        MonteCarloVAE(SymbolEncoder(5, 4), SymbolEncoder(5, 4), SymbolDecoder(5, 2, 4))
