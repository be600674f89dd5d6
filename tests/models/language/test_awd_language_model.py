"""The AWD-LSTM: sizes, one step by loops, masks, penalties, initialisation."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.layers import ElmanCell, LSTMCell
from rlm_tf.models import AWDLanguageModel, RegularizedLanguageModel, count_parameters
from rlm_tf.models.language.activation_penalties import Activations
from tests.references import lstm_reference
from tests.references.bmi_reference import ORACLE

_SIZES = ORACLE["sizes"]["awd_lstm_mos"]
V = 13


def _model(components=3, units=(7, 7, 5), **options):
    rates = dict.fromkeys(
        (
            "weight_drop",
            "word_dropout",
            "input_dropout",
            "layer_dropout",
            "output_dropout",
            "projection_dropout",
        ),
        0.0,
    )
    return AWDLanguageModel(
        V,
        embedding_width=4,
        units=units,
        mixture_components=components,
        jit_loop=False,
        dtype="float64",
        **{**rates, **options},
    )


def _of_size(name):
    vocabulary, embedding, first, last, components = _SIZES[name]["arguments"]
    return AWDLanguageModel(
        vocabulary,
        embedding_width=embedding,
        units=(first, first, last),
        mixture_components=components,
    )


@pytest.mark.parametrize("name", _SIZES)
def test_parameters_of_the_published_sizes(name):
    assert count_parameters(_of_size(name)) == _SIZES[name]["parameters"]


# === Computation ===


def _by_loops(model, tokens):
    """Log-probabilities `[B, T, V]` by the reference LSTM and sums of softmaxes."""
    table = model.embedding.embeddings.numpy()
    x = table[tokens]
    for layer, width in zip(model.recurrent_layers, model.units, strict=True):
        zeros = np.zeros((len(tokens), width))
        weights = [np.array(w) for w in layer.cell.get_weights()]
        x, *_ = lstm_reference.run(x, zeros, zeros, *weights, forget_bias=0.0)
    kernel, bias, mixing = (np.array(w) for w in model.projection.get_weights())
    vectors = np.tanh(x @ kernel + bias).reshape(*tokens.shape, -1, table.shape[1])
    logits = vectors @ table.T + model.output_layer.bias.numpy()
    softmaxes = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    prior = np.exp(x @ mixing)
    prior /= prior.sum(-1, keepdims=True)
    return np.log(np.einsum("btk,btkv->btv", prior, softmaxes))


def test_probabilities_and_loss_by_loops(rng):
    model = _model()
    tokens, targets = rng.integers(V, size=(2, 2, 6))
    expected = _by_loops(model, tokens)
    np.testing.assert_allclose(model(tokens), expected, rtol=1e-9)
    nll = model.nll(model.features(tokens), targets)
    picked = np.take_along_axis(expected, targets[..., None], -1)[..., 0]
    np.testing.assert_allclose(nll, -picked, rtol=1e-9)


def test_penalties_are_those_of_the_last_layer(rng):
    model = _model()
    tokens, targets = rng.integers(V, size=(2, 2, 6))
    weights = np.array([[1, 1, 1, 1, 0, 0], [1.0] * 6])
    terms = model.objective_terms(tokens, targets, weights, training=True)
    last = np.array(model.hidden_features(tokens)[-1])
    activation, temporal = terms["activation_penalty"], terms["temporal_penalty"]
    np.testing.assert_allclose(activation.loss, np.mean(last**2, -1), rtol=1e-12)
    np.testing.assert_array_equal(activation.weights, weights)
    changes = np.mean((last[:, 1:] - last[:, :-1]) ** 2, -1)
    np.testing.assert_allclose(temporal.loss, changes, rtol=1e-12)
    np.testing.assert_array_equal(temporal.weights, weights[:, 1:])
    specs = {spec.name: spec.coefficient for spec in model.term_specs}
    assert specs == {"nll": 1.0, "activation_penalty": 2.0, "temporal_penalty": 1.0}
    evaluated = model.objective_terms(tokens, targets, weights, training=False)
    assert set(evaluated) == {"nll"}
    one = _model(temporal_penalty=0.0)
    assert set(one.objective_terms(tokens, targets, weights, training=True)) == {
        "nll",
        "activation_penalty",
    }


def test_the_activation_penalty_sees_dropout_and_the_temporal_one_does_not(rng):
    model = _model(output_dropout=0.5)
    tokens = rng.integers(V, size=(2, 6))
    seen = Activations()
    model.features(tokens, training=True, collected=seen)
    raw, dropped = np.array(seen[-1]), np.array(seen.dropped)
    np.testing.assert_allclose(
        np.transpose(raw, [1, 0, 2]), model.hidden_features(tokens)[-1], rtol=1e-12
    )
    kept = dropped != 0
    np.testing.assert_allclose(dropped[kept], 2 * raw[kept], rtol=1e-12)
    assert not kept.all()


# === Dropout ===


def test_masks_are_locked_over_time():
    """Of equal words at all places, whose embeddings then lose the same entries."""
    model = _model(input_dropout=0.5)
    dropped = model.embedding_dropout(tf.ones([6, 50, 4], tf.float64), training=True)
    np.testing.assert_array_equal(dropped, np.broadcast_to(dropped[:1], dropped.shape))
    assert 0.3 < np.mean(dropped == 0) < 0.7
    assert np.any(dropped[0, 0] != dropped[0, 1])
    vectors = model.projection.dropout
    assert vectors.noise_shape == (1, None, None)
    free = RegularizedLanguageModel(V, LSTMCell(4), input_dropout=0.5)
    other = free.embedding_dropout(tf.ones([6, 50, 4]), training=True)
    assert np.any(other != other[:1])


def test_words_lose_their_whole_embedding_and_keep_their_logit(rng):
    """A layer that adds nothing shows what it was given."""
    model = RegularizedLanguageModel(
        V, ElmanCell(4), 1, word_dropout=0.5, jit_loop=False, dtype="float64"
    )
    seen = []
    layer = model.recurrent_layers[0]
    run = type(layer).call

    def call(inputs, *args, **kwargs):
        seen.append(np.array(inputs))
        return run(layer, inputs, *args, **kwargs)

    layer.call = call
    tokens = rng.integers(V, size=(8, 40))
    model.features(tokens, training=True)
    table = model.embedding.embeddings.numpy()
    given = np.transpose(seen[0], [1, 0, 2])
    lost = np.all(given == 0, axis=-1)
    for word in range(V):
        assert len(set(lost[tokens == word])) == 1
    assert 0 < lost.mean() < 1
    np.testing.assert_allclose(given[~lost], 2 * table[tokens[~lost]], rtol=1e-12)
    np.testing.assert_array_equal(model.tied_kernel(), table)
    model.features(tokens, training=False)
    np.testing.assert_array_equal(np.transpose(seen[1], [1, 0, 2]), table[tokens])


# === Initialisation and settings ===


def test_weights_start_as_published():
    model = AWDLanguageModel(
        500, embedding_width=100, units=(400, 100), mixture_components=4
    )
    scales = {
        "embedding": (model.embedding.embeddings, 0.1),
        "kernel": (model.recurrent_layers[0].cell.kernel, 400**-0.5),
        "recurrent": (model.recurrent_layers[1].cell.recurrent_kernel, 0.1),
        "bias": (model.recurrent_layers[0].cell.bias, 400**-0.5),
        "mixture": (model.projection.kernel, 0.1),
    }
    for name, (weight, scale) in scales.items():
        values = np.abs(weight.numpy())
        assert values.max() <= scale, name
        assert values.mean() == pytest.approx(scale / 2, rel=0.06), name
    first, second = (layer.cell.bias.numpy() for layer in model.recurrent_layers)
    assert len(np.unique(np.concatenate([first, second]))) > 1900


def test_it_learns_and_comes_back_from_its_config(rng):
    model = _model(weight_drop=0.3, word_dropout=0.1, seed=2)
    model.compile(keras.optimizers.SGD(1.0))
    text = np.tile(rng.integers(V, size=5), 30)
    data = text[None, :-1].repeat(2, 0), text[None, 1:].repeat(2, 0)
    losses = [model.train_on_batch(*data, return_dict=True)["nll"] for _ in range(12)]
    assert losses[-1] < losses[0] - 0.1
    again = AWDLanguageModel.from_config(model.get_config())
    again.set_weights(model.get_weights())
    np.testing.assert_array_equal(again(data[0]), model(data[0]))
    assert again.weight_drop == 0.3 and again.units == (7, 7, 5)
    assert [cell.weight_drop for cell in again.cells] == [0.3] * 3


def test_cells_of_several_widths_in_the_general_model(rng):
    cells = [LSTMCell(6), ElmanCell(3)]
    model = RegularizedLanguageModel(V, cells, 2, connections="stacked")
    assert [layer.cell.units for layer in model.recurrent_layers] == [6, 3]
    assert model.feature_width == 3
    again = RegularizedLanguageModel.from_config(model.get_config())
    again.set_weights(model.get_weights())
    tokens = rng.integers(V, size=(2, 4))
    np.testing.assert_array_equal(again(tokens), model(tokens))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: _model(units=7), "`units` must be the widths of the layers"),
        (lambda: _model(units=(7, 0)), "`units` must be an integer >= 1"),
        (lambda: _model(weight_drop=1.0), r"`weight_drop` must lie in \[0, 1\)"),
        (lambda: _model(word_dropout=1.0), r"`word_dropout` must lie in \[0, 1\)"),
        (lambda: _model(temporal_penalty=-1.0), "`temporal_penalty` must be finite"),
        (lambda: _model(dropout_samples=2), "penalties of activations need"),
        (
            lambda: RegularizedLanguageModel(V, [LSTMCell(3), LSTMCell(4)], 2),
            'several widths must be "stacked"; found widths 3, 4',
        ),
        (
            lambda: RegularizedLanguageModel(V, [LSTMCell(3)], 2),
            "a list of `num_layers` = 2, found 1",
        ),
    ],
)
def test_mistakes(make, message):
    with pytest.raises(ValueError, match=message):
        make()
