"""Tests of the neural restricted model."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.restricted import NeuralRestrictedModel
from tests.restricted.wrapper import Wrapper, round_trip


def _markov_stream(transitions: np.ndarray, length: int) -> np.ndarray:
    """Draws a stream whose next word depends on the two words before it."""
    random = np.random.default_rng(0)
    cumulative = transitions.cumsum(axis=-1)
    draws = random.random(length)
    stream = [0, 0]
    for draw in draws:
        stream.append(int((draw > cumulative[stream[-2], stream[-1]]).sum()))
    return np.minimum(stream, transitions.shape[-1] - 1)


@pytest.mark.slow
def test_learns_a_markov_source():
    transitions = np.random.default_rng(1).dirichlet(np.full(4, 0.5), [4, 4])
    stream = _markov_stream(transitions, 30_000)
    model = NeuralRestrictedModel(
        4, context_length=2, embedding_width=8, hidden_width=32, seed=3
    )
    history = model.fit_tokens(stream, epochs=6, validation_tokens=stream[:1000])
    assert len(history.history["val_loss"]) == 6
    contexts = np.stack(np.divmod(np.arange(16), 4), axis=1)
    rows = model.probs(contexts).numpy()
    expected = transitions.reshape(16, 4)
    frequency = np.bincount(stream[:-2] * 4 + stream[1:-1], minlength=16) / len(stream)
    divergence = (expected * np.log(expected / rows)).sum(axis=1)
    assert (frequency * divergence).sum() < 0.02
    uniform = (expected * np.log(expected * 4)).sum(axis=1)
    assert (frequency * uniform).sum() > 0.2
    np.testing.assert_allclose(np.exp(model.log_probs(contexts)), rows, rtol=1e-5)
    score = model.score(stream[:600])
    np.testing.assert_allclose(
        score,
        np.log(rows[stream[:598] * 4 + stream[1:599], stream[2:600]]),
        rtol=1e-5,
        atol=1e-6,
    )
    assert score.dtype == np.float64


def test_is_frozen_and_survives_a_keras_file(tmp_path):
    model = NeuralRestrictedModel(5, 3, embedding_width=4, hidden_width=6, seed=1)
    before = [w.numpy() for w in model.weights]
    model.fit_tokens(np.arange(60) % 5, epochs=1, batch_size=16)
    assert any(
        (a != w.numpy()).any() for a, w in zip(before, model.weights, strict=True)
    )
    wrapper = Wrapper(model)
    assert len(wrapper.trainable_weights) == 1
    contexts = tf.constant([[0, 1, 2], [4, 4, 4]])
    with tf.GradientTape() as tape:
        tape.watch([w.value for w in model.weights])
        loss = tf.reduce_sum(model.log_probs(contexts)[:, 0])
    assert tape.gradient(loss, [w.value for w in model.weights]) == [None] * 5
    expected = wrapper(contexts)
    loaded = round_trip(wrapper, tmp_path / "once.keras")
    loaded = round_trip(loaded, tmp_path / "twice.keras")
    np.testing.assert_array_equal(loaded(contexts), expected)
    assert loaded.restricted_model.get_config() == model.get_config()
    assert len(loaded.trainable_weights) == 1


def test_any_keras_network(tmp_path):
    network = keras.Sequential(
        [
            keras.Input([2], dtype="int32"),
            keras.layers.Embedding(5, 3),
            keras.layers.GRU(4),
            keras.layers.Dense(5),
        ]
    )
    model = NeuralRestrictedModel(5, 2, network=network)
    contexts = np.array([[1, 2], [3, 0]])
    expected = tf.nn.softmax(network(contexts))
    np.testing.assert_allclose(model.probs(contexts), expected, rtol=1e-6)
    model.fit_tokens(np.arange(40) % 5, epochs=1)
    loaded = round_trip(Wrapper(model), tmp_path / "model.keras").restricted_model
    np.testing.assert_array_equal(loaded.probs(contexts), model.probs(contexts))


def test_one_word_of_context_in_a_graph():
    model = NeuralRestrictedModel(5, embedding_width=2, hidden_width=3)
    rows = tf.function(model.log_probs)(tf.constant([0, 4, 4]))
    assert rows.shape == (3, 5)
    np.testing.assert_allclose(np.exp(rows).sum(1), 1, rtol=1e-5)


class TestErrors:
    def test_sizes(self):
        with pytest.raises(
            ValueError, match="`context_length` must be an integer >= 1"
        ):
            NeuralRestrictedModel(5, 0)
        network = keras.Sequential(
            [keras.layers.Embedding(5, 4), keras.layers.Flatten()]
        )
        with pytest.raises(ValueError, match=r"to logits \[N, 5\], found \(1, 4\)"):
            NeuralRestrictedModel(5, 1, network=network)

    def test_streams(self):
        model = NeuralRestrictedModel(5, 2, embedding_width=2, hidden_width=3)
        with pytest.raises(ValueError, match="more than 2 token"):
            model.fit_tokens([0, 1])
        with pytest.raises(ValueError, match=r"ids in \[0, 5\), found 0..5"):
            model.fit_tokens([0, 1, 5])
        with pytest.raises(ValueError, match=r"shape \[N, 2\]"):
            model.probs([1, 2])
