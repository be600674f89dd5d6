"""Connections, dropouts, samples and mixtures of the regularised language model."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf import layers
from rlm_tf.layers import ReplicaDropout
from rlm_tf.models import (
    RegularizedLanguageModel,
    count_parameters,
    width_for_budget,
)
from tests.models.language.recurrent_fixtures import (
    B,
    T,
    V,
    compile_and_fit,
    dataset,
    flat,
)
from tests.models.language.recurrent_fixtures import make_regularized as make

H = 4


def tokens(rng):
    return rng.integers(V, size=(B, T)).astype("int32")


@pytest.fixture
def fixed_masks(monkeypatch):
    """Makes every dropout layer multiply by a mask of its own that stays the same."""
    masks = {}

    def call(self, inputs, training=False):
        if not training or self.rate == 0:
            return inputs
        shape = tuple(inputs.shape)
        key = (self.name, shape)
        if key not in masks:
            rng = np.random.default_rng(len(masks))
            masks[key] = rng.integers(2, size=shape).astype("float32") * 2
        return inputs * masks[key]

    monkeypatch.setattr(ReplicaDropout, "call", call)
    return masks


def mask_of(masks, name):
    """Returns the one mask of a layer, batch first."""
    (found,) = [mask for (owner, _), mask in masks.items() if owner == name]
    return found.transpose(1, 0, 2)


def run_layer(model, index, x, states=None):
    """Runs one layer's cell in Keras' loop; returns outputs and final states."""
    cell = model.recurrent_layers[index].cell
    rnn = keras.layers.RNN(cell, return_sequences=True, return_state=True)
    outputs, *final = rnn(x, initial_state=states)
    return outputs.numpy(), final


# === Connections and places of dropout ===


@pytest.mark.parametrize("connections", ["stacked", "skip", "residual"])
def test_wiring_and_masks(rng, fixed_masks, connections):
    model = make(
        connections=connections,
        input_dropout=0.5,
        layer_dropout=0.5,
        output_dropout=0.5,
        embedding_width=3,
        projection_dropout=0.5,
    )
    x = tokens(rng)
    features = model.features(x, training=True).numpy()

    def mask(name):
        return mask_of(fixed_masks, name)

    inputs = model.embedding.embeddings.numpy()[x] * mask("embedding_dropout")
    h0, _ = run_layer(model, 0, inputs)
    if connections == "residual":
        y0 = h0 * mask("layer_dropout_0")
        y1 = run_layer(model, 1, y0)[0] * mask("layer_dropout_1")
        y2 = run_layer(model, 2, y0 + y1)[0] * mask("layer_dropout_2")
        total = y0 + y1 + y2
    else:
        h1, _ = run_layer(model, 1, h0 * mask("layer_dropout_0"))
        h2, _ = run_layer(model, 2, h1 * mask("layer_dropout_1"))
        total = h2 if connections == "stacked" else h0 + h1 + h2
        # The last layer's outputs get the output mask only.
        assert not any(name == "layer_dropout_2" for name, _ in fixed_masks)
    total = total * mask("final_dropout")
    expected = total @ model.projection.kernel.numpy() * mask("after_projection")
    np.testing.assert_allclose(features, expected, rtol=1e-5, atol=1e-6)
    # In evaluation no mask at all, and the tied softmax.
    logits = model(x).numpy()
    plain = model.features(x).numpy() @ model.embedding.embeddings.numpy().T
    np.testing.assert_allclose(logits, plain + model.output_layer.bias, atol=1e-5)


def test_two_layers_are_wired_alike_by_skips_and_residuals(rng):
    x = tokens(rng)
    cell = layers.RewiredLSTMCell(H)
    models = [
        make(cell, num_layers=2, connections=c, seed=5) for c in ("skip", "residual")
    ]
    np.testing.assert_allclose(models[0](x), models[1](x), rtol=1e-6)


def test_state_masks_are_drawn_for_every_window_and_layer(rng):
    model = make(layers.LSTMCell(H, state_dropout=0.5), num_layers=2)
    x = tokens(rng)
    first, second = (model.features(x, training=True).numpy() for _ in range(2))
    assert np.any(first != second)
    generators = [layer.cell.seed_generator for layer in model.recurrent_layers]
    states = [g.state.numpy()[0] for g in generators]
    assert states[0] != states[1]
    np.testing.assert_array_equal(model.features(x), model.features(x))


def test_layers_have_cells_of_their_own_and_the_prototype_none(rng):
    cell = layers.MogrifierLSTMCell(H, 2)
    model = make(cell, num_layers=2, seed=3)
    assert not cell.built and model.cell is cell
    one, two = (layer.cell for layer in model.recurrent_layers)
    assert np.any(one.cell.kernel.numpy() != two.cell.kernel.numpy())
    again = make(layers.MogrifierLSTMCell(H, 2), num_layers=2, seed=3)
    for a, b in zip(model.weights, again.weights, strict=True):
        np.testing.assert_array_equal(a, b)


# === Dropout samples ===


def test_samples_average_probabilities_and_keep_their_own_states(rng, fixed_masks):
    model = make(
        num_layers=2,
        dropout_samples=3,
        input_dropout=0.5,
        layer_dropout=0.5,
        output_dropout=0.5,
    )
    start = np.ones(B, "int32")
    windows = [tokens(rng), tokens(rng)]
    states = model.zero_states(3 * B)
    for x in windows:
        y = tokens(rng)
        features = model.features((x, start), training=True)
        found = model.nll(features, y)
        # The same rows by hand: sample d of example b is row 3 b + d.
        rows, states = model.run_window(np.repeat(x, 3, axis=0), states, True)
        logits = rows.numpy() @ model.embedding.embeddings.numpy().T
        probs = tf.nn.softmax(logits + model.output_layer.bias).numpy()
        mean = probs.reshape(B, 3, T, V).mean(axis=1)
        expected = -np.log(np.take_along_axis(mean, y[..., None], axis=2))[..., 0]
        np.testing.assert_allclose(found, expected, rtol=1e-4)
        np.testing.assert_allclose(
            np.exp(model.output_logits(features)), mean, rtol=1e-4, atol=1e-6
        )
        start = np.zeros(B, "int32")
    carried = flat(model.carried_states(training=True))
    for state, by_hand in zip(carried, flat(states), strict=True):
        assert state.shape == (B, 3 * H)
        np.testing.assert_allclose(state.reshape(-1, H), by_hand, rtol=1e-5)


def test_one_sample_is_the_ordinary_loss_and_evaluation_has_one(rng):
    many, one = make(dropout_samples=4, seed=2), make(seed=2)
    x, y = tokens(rng), tokens(rng)
    # Without dropout all samples are alike.
    np.testing.assert_allclose(
        many.nll(many.features(x, training=True), y),
        one.nll(one.features(x, training=True), y),
        rtol=1e-5,
    )
    np.testing.assert_array_equal(many(x), one(x))
    assert many.features(x).shape == (B, T, H)


def test_gradient_of_samples_is_that_of_the_mean(rng):
    model = make(dropout_samples=3, num_layers=1, output_dropout=0.5)
    features = tf.constant(rng.normal(size=(2, 3, 3 * H)), tf.float32)
    y = rng.integers(V, size=(2, 3))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(features)
        found = tf.reduce_sum(model.nll(features, y))
        logits = model.output_layer(
            tf.reshape(features, [2, 3, 3, H]), tied_kernel=model.tied_kernel()
        )
        mean = tf.reduce_mean(tf.nn.softmax(logits), axis=2)
        expected = -tf.reduce_sum(tf.math.log(tf.gather(mean, y, batch_dims=2)))
    np.testing.assert_allclose(
        tape.gradient(found, features),
        tape.gradient(expected, features),
        rtol=1e-4,
        atol=1e-6,
    )


def test_reset_rate_zeroes_rows_of_training_only(rng):
    model = make(reset_rate=0.5, num_layers=1)
    x, zeros = rng.integers(V, size=(200, 2)), np.zeros(200, "int32")
    for training in (True, False):
        model.features((x, zeros + 1), training=training)
    before = flat(model.carried_states(training=True))[0]
    assert np.all(np.any(before != 0, axis=1))
    starts = model.training_starts(tf.constant(zeros)).numpy()
    assert 0.3 < starts.mean() < 0.7
    # Rows that were zeroed go on as new streams do.
    fresh, going = (model.features((x, zeros + one)).numpy() for one in (1, 0))
    assert np.all(np.any(fresh != going, axis=(1, 2)))
    again = make(num_layers=1)
    np.testing.assert_array_equal(again.training_starts(zeros), zeros)


# === Mixtures of softmaxes ===


def test_mixture_whose_logits_are_computed_twice(rng):
    x, y = tokens(rng), tokens(rng)
    found = []
    for recompute in (False, True):
        model = make(
            mixture_components=2,
            embedding_width=3,
            num_layers=1,
            recompute_logits=recompute,
        )
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model.nll(model.features(x), y))
        slopes = tape.gradient(loss, model.trainable_variables)
        found.append([loss, *slopes])
    for kept, computed_twice in zip(*found, strict=True):
        np.testing.assert_allclose(computed_twice, kept, rtol=1e-4, atol=1e-6)


def test_mixture_of_softmaxes(rng):
    model = make(mixture_components=2, embedding_width=3, num_layers=1)
    x, y = tokens(rng), tokens(rng)
    h, _ = run_layer(model, 0, model.embedding.embeddings.numpy()[x])
    kernel = model.projection.kernel.numpy()
    matrix, bias = model.embedding.embeddings.numpy(), model.output_layer.bias.numpy()
    weights = tf.nn.softmax(h @ model.projection.mixture_kernel.numpy()).numpy()
    vectors = np.tanh(h @ kernel + model.projection.bias.numpy())
    for temperature in (1.0, 0.7):
        probs = sum(
            weights[..., k : k + 1]
            * tf.nn.softmax(
                (vectors[..., 3 * k : 3 * k + 3] @ matrix.T + bias) / temperature
            ).numpy()
            for k in range(2)
        )
        features = model.features(x)
        found = np.exp(model.output_logits(features, temperature))
        np.testing.assert_allclose(found, probs, rtol=1e-4)
        if temperature == 1.0:
            np.testing.assert_allclose(
                model.nll(features, y),
                -np.log(np.take_along_axis(probs, y[..., None], axis=2))[..., 0],
                rtol=1e-4,
            )


# === The loss in its published scale ===


@pytest.mark.eager
def test_scale_penalty_and_clipping_are_those_of_the_published_code(rng):
    """Loss summed over time, mean over the batch, plus l2 / 2 |w|^2, then clipped."""
    data = dataset(rng, steps=1)
    ((x, _), y, _) = next(iter(data))
    options = {"num_layers": 1, "seed": 4}
    for clip_norm in (None, 0.3):
        model = make(loss_scale=float(T), l2=0.02, clip_norm=clip_norm, **options)
        other = make(**options)
        compile_and_fit(model, data, epochs=1)
        variables = [weight.value for weight in other.trainable_weights]
        with tf.GradientTape() as tape:
            nll = tf.nn.sparse_softmax_cross_entropy_with_logits(y, other(x))
            loss = tf.reduce_mean(tf.reduce_sum(nll, axis=1))
            loss += 0.01 * tf.add_n([tf.reduce_sum(v**2) for v in variables])
        gradients = tape.gradient(loss, variables)
        if clip_norm:
            gradients, norm = tf.clip_by_global_norm(gradients, clip_norm)
            assert norm > clip_norm
        for weight, variable, gradient in zip(
            model.trainable_weights, variables, gradients, strict=True
        ):
            np.testing.assert_allclose(
                weight, variable - 0.5 * gradient, atol=2e-6, err_msg=weight.path
            )


@pytest.mark.parametrize(
    ("budget", "vocabulary", "expected", "options"),
    [
        (24_000_000, 10_001, 951, {}),
        (24_000_000, 10_001, 912, {"rounds": 5, "rank": 84}),
        pytest.param(
            35_000_000,
            33_279,
            1211,
            {"ratio": 0.35308},
            marks=[pytest.mark.slow, pytest.mark.landing],
        ),
        pytest.param(
            35_000_000,
            33_279,
            1366,
            {"ratio": 0.19932, "rounds": 6, "rank": 48},
            marks=[pytest.mark.slow, pytest.mark.landing],
        ),
    ],
)
def test_widths_of_the_published_budgets(budget, vocabulary, expected, options):
    """The widths that the authors' own counting gives, mixtures of two at the end."""

    def build(width):
        zeros = {"kernel_initializer": "zeros", "recurrent_initializer": "zeros"}
        cell = layers.MogrifierLSTMCell(
            width, options.get("rounds", 0), options.get("rank"), **zeros
        )
        ratio = options.get("ratio", 1)
        return RegularizedLanguageModel(
            vocabulary,
            cell,
            embedding_width=max(1, round(ratio * width)),
            mixture_components=2 if ratio < 1 else 1,
        )

    width = width_for_budget(budget, build)
    assert width == expected
    assert count_parameters(build(width)) <= budget


def test_budget_of_counts_that_are_no_polynomial():
    def count(width):
        return width**3 + 7 * (width // 5)

    for budget in (9, 10, 1000, 12345):
        width = width_for_budget(budget, count)
        assert count(width) <= budget < count(width + 1)
    with pytest.raises(ValueError, match="has 2 parameters, more than the 1"):
        width_for_budget(1, lambda width: width + 1)
    assert width_for_budget(50, lambda width: np.prod([width, 7])) == 7
    for constant in (lambda width: 5, lambda width: min(width, 40)):
        with pytest.raises(ValueError, match="number must grow with the width"):
            width_for_budget(50, constant)
