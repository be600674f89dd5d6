"""What the library asks of a language model, of every kind of model."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.evaluation import target_log_probs
from rlm_tf.generation import generate
from rlm_tf.layers import LSTMCell
from rlm_tf.models import (
    InBatchContexts,
    InducedModelMatching,
    RecurrentLanguageModel,
    RegularizedLanguageModel,
)
from rlm_tf.models.language.interface import (
    LanguageModelInterface,
    MemoryInterface,
    StatesInterface,
    interface_of,
)
from rlm_tf.restricted import KneserNey

pytestmark = pytest.mark.eager

SIZE = 5
TOKENS = np.array([[1, 2, 3, 1], [0, 4, 4, 2]], np.int32)


def _plain(**attributes) -> keras.Model:
    model = keras.Sequential(
        [keras.layers.Embedding(SIZE, 3), keras.layers.Dense(SIZE)]
    )
    model.build((None, None))
    for name, value in attributes.items():
        setattr(model, name, value)
    return model


class Counter(keras.Model):
    """Has states of its own, and neither memory nor features: it counts tokens."""

    vocabulary_size = SIZE

    def call(self, tokens, training=False):
        features, _ = self.forward(tokens, self.zero_states(tf.shape(tokens)[0]))
        return self.output_logits(features)

    def zero_states(self, batch_size):
        return tf.zeros([batch_size, SIZE])

    def forward(self, tokens, states, training=False):
        seen = tf.cumsum(tf.one_hot(tokens, SIZE), axis=1) + states[:, tf.newaxis]
        return seen, seen[:, -1]

    def output_logits(self, features, temperature=1.0):
        return features / temperature


def _recurrent() -> RecurrentLanguageModel:
    return RecurrentLanguageModel(SIZE, 4, 2, dropout=0.5, jit_loop=False, seed=1)


def _wrapper() -> InducedModelMatching:
    restricted = KneserNey(order=2).fit(TOKENS.ravel(), SIZE)
    return InducedModelMatching(_recurrent(), restricted, InBatchContexts())


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (_plain, LanguageModelInterface),
        (Counter, StatesInterface),
        (_recurrent, MemoryInterface),
        (_wrapper, MemoryInterface),
    ],
)
def test_windows_and_states_give_the_models_logits(make, kind):
    model = make()
    interface = interface_of(model)
    assert type(interface) is kind
    whole = np.array(interface.model(TOKENS))
    states = interface.zero_states(2)
    if interface.has_states:
        parts = []
        for window in (TOKENS[:, :1], TOKENS[:, 1:]):
            features, states = interface.forward(tf.constant(window), states)
            parts.append(interface.output_logits(features))
        np.testing.assert_allclose(np.concatenate(parts, axis=1), whole, atol=1e-5)
    features, _ = interface.forward(tf.constant(TOKENS), interface.zero_states(2))
    halved = interface.output_logits(features, 2.0)
    np.testing.assert_allclose(halved, whole / 2, atol=1e-5)
    outputs = interface.outputs(TOKENS, training=False)
    nll = interface.nll(outputs, TOKENS)
    log_probs = whole - np.log(np.exp(whole).sum(axis=-1, keepdims=True))
    expected = -np.take_along_axis(log_probs, TOKENS[..., np.newaxis], -1)[..., 0]
    np.testing.assert_allclose(nll, expected, atol=1e-5)
    rows = tf.constant([0, 6])
    of_rows = interface.logits(outputs, rows)
    np.testing.assert_allclose(of_rows, whole.reshape(-1, SIZE)[[0, 6]], atol=1e-5)
    last = interface.last_logits(tf.constant(TOKENS), tf.constant([3, 1]))
    np.testing.assert_allclose(last, whole[[0, 1], [3, 1]], atol=1e-5)


@pytest.mark.parametrize("connections", ["stacked", "residual"])
def test_hidden_features_are_those_of_every_layer(connections):
    model = RegularizedLanguageModel(
        SIZE, LSTMCell(4), num_layers=2, connections=connections, jit_loop=False, seed=2
    )
    found = interface_of(model).hidden_features(tf.constant(TOKENS))
    assert [layer.shape for layer in found] == [[2, 4, 4]] * 2
    # Layer by layer, by hand; without dropout a residual layer reads what those before
    # it add up to.
    x = tf.transpose(model.embedding(tf.transpose(TOKENS)), [1, 0, 2])
    total = 0.0
    for layer, hidden in zip(model.recurrent_layers, found, strict=True):
        zero = [tf.zeros([2, 4])] * len(layer.cell.state_size)
        outputs, _ = layer(tf.transpose(x, [1, 0, 2]), zero)
        np.testing.assert_allclose(hidden, tf.transpose(outputs, [1, 0, 2]), atol=1e-6)
        total = total + hidden
        x = total if connections == "residual" else hidden


def test_hidden_features_start_from_states_and_leave_the_memory_alone():
    model = _recurrent()
    whole = model.hidden_features(tf.constant(TOKENS))
    _, states = model.forward(tf.constant(TOKENS[:, :2]), model.zero_states(2))
    rest = model.hidden_features(tf.constant(TOKENS[:, 2:]), states)
    for layer, part in zip(whole, rest, strict=True):
        np.testing.assert_allclose(layer[:, 2:], part, atol=1e-6)
    assert all(not np.any(v) for v in model.evaluation_state.values)
    trained = model.hidden_features(tf.constant(TOKENS), training=True)
    assert np.abs(trained[0] - whole[0]).max() > 1e-3
    with pytest.raises(ValueError, match="Sequential does not give the outputs of its"):
        interface_of(_plain()).hidden_features(tf.constant(TOKENS))


def test_masked_models_are_refused_where_only_causal_ones_do():
    masked = _plain(is_causal=False)
    for use in (
        lambda: target_log_probs(masked, TOKENS.ravel(), 2, 2, prefix=0),
        lambda: generate(masked, TOKENS, 2, seed=1),
    ):
        with pytest.raises(ValueError, match="Sequential is masked"):
            use()
    assert interface_of(_plain()).is_causal
    assert interface_of(_plain(vocabulary_size=SIZE)).vocabulary_size == SIZE
