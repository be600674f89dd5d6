"""The recurrent language model: numbers, dropout, saving, mistakes."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.models.language.recurrent_language_model import RecurrentLanguageModel
from tests.models.language.recurrent_fixtures import (
    B,
    H,
    T,
    V,
    compile_and_fit,
    dataset,
    flat,
    make,
    tokens,
)

# Tracing takes longer than the few steps of most tests.
pytestmark = pytest.mark.eager

# === Numbers ===


def test_equals_a_model_of_keras_layers(rng):
    model = make(embedding_width=3)
    inputs = keras.Input((T,), dtype="int32")
    h = keras.layers.Embedding(V, 3)(inputs)
    for _ in range(2):
        h = keras.layers.LSTM(H, return_sequences=True)(h)
    other = keras.Model(inputs, keras.layers.Dense(V)(h))
    weights = model.get_weights()
    assert len(weights) == len(other.weights) == 9
    for bias in (weights[3], weights[6]):
        bias[H : 2 * H] += 1.0
    weights[7] = weights[7].T
    other.set_weights(weights)
    x, y = tokens(rng, 2)
    logits = model(x)
    np.testing.assert_allclose(logits, other(x), rtol=1e-4, atol=1e-5)
    expected = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
    loss = model.nll(model.features(x), y)
    np.testing.assert_allclose(loss, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "arguments",
    [
        {"tied": True},
        {"tied": True, "embedding_width": 3, "projection_width": 3},
        {"projection_width": 2, "use_output_bias": False},
    ],
)
def test_variants_of_the_output_layer(rng, arguments):
    model = make(**arguments)
    x, y = tokens(rng, 2)
    features = model.features(x)
    width = arguments.get("projection_width", H)
    assert features.shape == (B, T, width)
    kernel = model.embedding if model.tied else model.output_layer
    expected = features.numpy() @ kernel.get_weights()[0].T
    if model.use_output_bias:
        expected += model.output_layer.get_weights()[-1]
    np.testing.assert_allclose(model(x), expected, rtol=1e-5, atol=1e-6)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model.nll(model.features(x), y))
    gradients = tape.gradient(loss, [w.value for w in model.trainable_weights])
    assert all(gradient is not None for gradient in gradients)


def test_uniform_recipe_covers_everything_but_the_cells_biases():
    model = RecurrentLanguageModel(500, 40, 2, seed=3)
    for weight in model.weights:
        values = weight.numpy()
        if "recurrent" in weight.path and weight.name == "bias":
            np.testing.assert_array_equal(values, 0.0)
        else:
            assert -0.1 <= values.min() < -0.095
            assert 0.095 < values.max() <= 0.1
    same = RecurrentLanguageModel(500, 40, 2, seed=3)
    other = RecurrentLanguageModel(500, 40, 2, seed=4)
    for a, b, c in zip(model.weights, same.weights, other.weights, strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.name == "bias" or not np.array_equal(a, c)
    kernels = [layer.cell.kernel.numpy() for layer in model.recurrent_layers]
    assert not np.array_equal(*kernels)


def test_unknown_sizes_in_a_graph(rng):
    model = make()
    run = tf.function(
        lambda x: model(x), input_signature=[tf.TensorSpec([None, None], tf.int32)]
    )
    for x in (tokens(rng)[0], tokens(rng)[0][:1, :1]):
        np.testing.assert_allclose(run(x), model(x), rtol=1e-5, atol=1e-6)


# === Dropout ===


def test_dropout_masks_are_fresh_at_each_step_and_spare_the_recurrent_state(rng):
    model = make(dropout=0.5, input_dropout=0.0)
    x = tokens(rng)[0]
    model.recurrent_layers = model.recurrent_layers[:1]
    model.dropout_layers = [model.dropout_layers[0], model.dropout_layers[2]]
    plain, plain_states = model.forward(x, model.zero_states(B), training=False)
    dropped, states = model.forward(x, model.zero_states(B), training=True)
    for state, expected in zip(flat(states), flat(plain_states), strict=True):
        np.testing.assert_allclose(state, expected, rtol=1e-6)
    kept = np.array(dropped) != 0
    np.testing.assert_allclose(dropped[kept], 2.0 * plain[kept], rtol=1e-5)
    assert 0.3 < kept.mean() < 0.7
    assert any(not np.array_equal(kept[:, 0], kept[:, t]) for t in range(1, T))
    again, _ = model.forward(x, model.zero_states(B), training=True)
    assert not np.array_equal(kept, np.array(again) != 0)


def test_rates_reach_their_places():
    def rates(**kwargs):
        model = RecurrentLanguageModel(V, H, 3, **kwargs)
        return [layer.rate for layer in model.dropout_layers]

    assert rates(dropout=0.3) == [0.3] * 4
    assert rates(dropout=0.3, input_dropout=0.1) == [0.1, 0.3, 0.3, 0.3]
    assert rates(dropout=0.3, output_dropout=0.0) == [0.3, 0.3, 0.3, 0.0]


def test_restored_random_states_repeat_the_masks(rng):
    model = make(dropout=0.5)
    x = tokens(rng)[0]
    variables = [layer.seed_generator.state for layer in model.dropout_layers]
    assert len(variables) == 3
    before = [variable.numpy() for variable in variables]
    first = model(x, training=True)
    assert not np.array_equal(first, model(x, training=True))
    for variable, value in zip(variables, before, strict=True):
        variable.assign(value)
    np.testing.assert_array_equal(model(x, training=True), first)


# === Saving ===


def test_keras_file_has_weights_and_arguments_but_no_state(rng, tmp_path):
    model = RecurrentLanguageModel(
        V,
        H,
        1,
        embedding_width=3,
        projection_width=3,
        tied=True,
        dropout=0.4,
        input_dropout=0.1,
        output_dropout=0.2,
        initializer=keras.initializers.RandomNormal(stddev=0.3),
        initializer_scale=0.7,
        forget_bias=0.5,
        use_output_bias=False,
        jit_loop=False,
        seed=9,
        clip_norm=2.0,
        loss_scale=3.0,
        name="other",
    )
    x = tokens(rng)[0]
    model((x, np.ones(B, "int32")))
    for turn in range(2):
        path = tmp_path / f"model_{turn}.keras"
        model.save(path)
        loaded = keras.models.load_model(path)
        assert loaded.get_config() == model.get_config()
        np.testing.assert_array_equal(loaded(x), model(x))
        assert len(loaded.weights) == len(model.weights)
        assert loaded.evaluation_state.streams.numpy() == 0
        model = loaded


def test_compiled_model_goes_on_training_after_loading(rng, tmp_path):
    data = dataset(rng)
    model = make()
    compile_and_fit(model, data, epochs=1)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    histories = [
        m.fit(data, shuffle=False, verbose=0).history["nll"] for m in (model, loaded)
    ]
    np.testing.assert_allclose(*histories, rtol=1e-6)


# === Mistakes ===


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dropout": 1.0}, r"`dropout` must lie in \[0, 1\), found 1.0"),
        ({"input_dropout": -0.1}, "`input_dropout` must lie in"),
        ({"embedding_width": 0}, "`embedding_width` must be an integer >= 1, found 0"),
        ({"projection_width": 4.5}, "`projection_width` must be an integer >= 1"),
        ({"tied": True, "embedding_width": 3}, "must be that of the embedding, 3"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        make(**arguments)


def test_wrong_inputs_are_named(rng):
    model = make()
    model.compile(run_eagerly=True)
    x = tokens(rng)[0]
    with pytest.raises(ValueError, match=r"`tokens` must have axes \[B T\]"):
        model(x[0])
    with pytest.raises(ValueError, match="axis B of `start` is 3, expected 4"):
        model((x, np.ones(3, "int32")))
    for method in (model.fit, model.evaluate):
        with pytest.raises(ValueError, match="no targets"):
            method(x, verbose=0)
    with pytest.raises(ValueError, match=r"`targets` .* shape \(4, \d+\), found"):
        model.fit(x, x[:, :-1], verbose=0)
    with pytest.raises(ValueError, match="`targets` must be integer ids, found dtype"):
        model.fit(x, x.astype("float32"), verbose=0)
    for method in (model.predict, lambda x, **options: model.fit(x, x, **options)):
        with pytest.raises(ValueError, match="`tokens` must be integer ids, found"):
            method(x.astype("float32"), verbose=0)
