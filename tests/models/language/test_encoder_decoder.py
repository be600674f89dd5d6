"""The encoder-decoder and the task of saying sequences backwards."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf import layers
from rlm_tf.data import ReverseCopy
from rlm_tf.models import EncoderDecoder, count_parameters, width_for_budget

# Tracing takes longer than the few steps of most tests.
pytestmark = pytest.mark.eager

V, H = 8, 5


def make(cell=None, **kwargs):
    cell = cell or layers.MogrifierLSTMCell(H, 2, 1)
    return EncoderDecoder(V, cell, **{"jit_loop": False, "seed": 3, **kwargs})


# === Task ===


def test_examples_are_reversed_and_framed():
    task = ReverseCopy(4, 6, seed=2)
    ((source, inputs), targets) = next(iter(task.dataset("train", 10, 5)))
    for array in (source, inputs, targets):
        assert array.shape == (5, 5) and array.dtype == tf.int32
    np.testing.assert_array_equal(source[:, :4].numpy()[:, ::-1], targets[:, :4])
    assert np.all(source[:, 4] == task.eos) and np.all(targets[:, 4] == task.eos)
    assert np.all(inputs[:, 0] == task.marker)
    np.testing.assert_array_equal(inputs[:, 1:], targets[:, :-1])
    assert task.vocabulary_size == 8


def test_splits_and_seeds_differ_and_epochs_repeat():
    def sources(split, seed=2, start=0):
        data = ReverseCopy(6, 50, seed).dataset(split, 12, 4, start)
        return np.concatenate([source for (source, _), _ in data])

    np.testing.assert_array_equal(sources("train"), sources("train"))
    np.testing.assert_array_equal(sources("train", start=2), sources("train")[8:])
    for other in (sources("valid"), sources("test"), sources("train", 3)):
        assert np.mean(other[:, :6] == sources("train")[:, :6]) < 0.2


def test_tokens_are_uniform():
    data = ReverseCopy(50, 10).dataset("train", 4000, 100)
    tokens = np.concatenate([source[:, :50] for (source, _), _ in data]).ravel()
    counts = np.bincount(tokens, minlength=10)
    assert len(counts) == 10
    expected = len(tokens) / 10
    assert np.sum((counts - expected) ** 2) / expected < 27.9  # 0.999 quantile


# === Model ===


def test_decoder_starts_from_the_encoders_state(rng):
    model = make(embedding_width=3)
    source, inputs = rng.integers(V, size=(2, 4, 6))
    logits = model((tf.constant(source), tf.constant(inputs)))

    def run(layer, x, states=None):
        rnn = keras.layers.RNN(layer.cell, return_sequences=True, return_state=True)
        outputs, *final = rnn(x, initial_state=states)
        return outputs.numpy(), final

    tables = [
        layer.embeddings.numpy()
        for layer in (model.source_embedding, model.target_embedding)
    ]
    _, states = run(model.encoder, tables[0][source])
    outputs, _ = run(model.decoder, tables[1][inputs], states)
    expected = outputs @ model.projection.kernel.numpy()
    expected = expected @ model.output_layer.kernel.numpy().T
    np.testing.assert_allclose(logits, expected, rtol=1e-4, atol=1e-5)


def test_greedy_is_the_argmax_of_the_whole_text(rng):
    model = make()
    source = tf.constant(rng.integers(V, size=(3, 4)))
    said = model.greedy(source, 6, 5).numpy()
    for t in range(5):
        inputs = np.concatenate([np.full((3, 1), 6), said[:, :t]], axis=1)
        logits = model((source, tf.constant(inputs))).numpy()
        np.testing.assert_array_equal(said[:, t], logits[:, -1].argmax(axis=-1))


@pytest.mark.landing
@pytest.mark.graph
@pytest.mark.slow
def test_it_learns_to_say_short_sequences_backwards():
    task = ReverseCopy(3, 6)
    model = make(layers.MogrifierLSTMCell(24, 2, 4), loss_scale=4.0, clip_norm=10.0)
    model.compile(keras.optimizers.Adam(0.02, beta_1=0.0))
    model.fit(task.dataset("train", 30_000, 50), verbose=0)
    results = model.evaluate(task.dataset("test", 200, 50), verbose=0, return_dict=True)
    # Guessing costs ln 6 nats a token, 1.3 with `<eos>` for nothing.
    assert results["nll"] < 0.3
    ((source, _), targets) = next(iter(task.dataset("test", 200, 200)))
    said = model.greedy(source, task.marker, 4).numpy()
    assert np.mean(said == targets) > 0.85


def test_width_of_the_published_budget():
    """10 million parameters, 1000 tokens, E/H = 498/787: the paper's best LSTM."""

    def build(width):
        zeros = {"kernel_initializer": "zeros", "recurrent_initializer": "zeros"}
        cell = layers.LSTMCell(width, **zeros)
        ratio = 498 / 787
        return EncoderDecoder(1002, cell, embedding_width=max(1, round(ratio * width)))

    width = width_for_budget(10_000_000, build)
    assert width == 787
    assert count_parameters(build(width)) <= 10_000_000


def test_mistakes_are_named(rng):
    with pytest.raises(ValueError, match="must be one of train, valid, test"):
        ReverseCopy(3).dataset("dev", 10, 5)
    with pytest.raises(ValueError, match="`num_examples` must be an integer >= 5"):
        ReverseCopy(3).dataset("train", 4, 5)
    with pytest.raises(ValueError, match=r"`cell` must be an rlm_tf\.layers\.Hidden"):
        make(keras.layers.GRUCell(3))
    with pytest.raises(ValueError, match="`num_tokens` must be an integer >= 1"):
        make().greedy(tf.zeros([1, 2], tf.int32), 6, 0)
    with pytest.raises(ValueError, match="`source` must be integer ids"):
        make()((tf.zeros([1, 2]), tf.zeros([1, 2], tf.int32)))
