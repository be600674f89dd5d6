"""Encoders of documents against loops; padding never leaks."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.layers import (
    AveragedWords,
    ConvolutionalText,
    LSTMCell,
    MogrifierLSTMCell,
    PooledEncoder,
    RecurrentText,
    TransformerEncoder,
)

_TOKENS = np.array([[2, 5, 3, 0, 0], [4, 1, 2, 6, 4], [0, 0, 0, 0, 0]], np.int32)
_MAKERS = {
    "words": lambda: AveragedWords(7, 3, buckets=0, seed=1),
    "pairs": lambda: AveragedWords(7, 3, buckets=11, seed=1),
    "convolutional": lambda: ConvolutionalText(7, 4, 3, sizes=(1, 3), seed=1),
    "recurrent": lambda: RecurrentText(7, 4, LSTMCell(3, seed=2), seed=1),
    "mogrifier": lambda: RecurrentText(7, 4, MogrifierLSTMCell(3, 2), seed=1),
    "mean": lambda: PooledEncoder(_encoder()),
    "cls": lambda: PooledEncoder(_encoder(), pooling="cls"),
}


def _encoder():
    return TransformerEncoder(7, num_layers=1, width=4, num_heads=2, seed=1)


@pytest.mark.parametrize("name", [*_MAKERS])
def test_padding_changes_nothing(name):
    layer = _MAKERS[name]()
    found = layer(_TOKENS).numpy()
    assert found.shape == layer.compute_output_shape(_TOKENS.shape)
    more = layer(np.pad(_TOKENS, [[0, 0], [0, 3]]))
    np.testing.assert_allclose(more, found, atol=1e-6)
    alone = layer(_TOKENS[:1, :3])
    np.testing.assert_allclose(alone, found[:1], atol=1e-6)
    # Filters have a bias; [CLS] is a token as any.
    assert not found[2].any() or name in ("convolutional", "cls")


@pytest.mark.parametrize("buckets", [0, 11])
def test_means_by_loops(buckets):
    layer = AveragedWords(7, 3, buckets=buckets, seed=1)
    found = layer(_TOKENS).numpy()
    table = layer.table.numpy()
    pairs = layer.pairs(tf.constant(_TOKENS)).numpy() if buckets else None
    for row, tokens in enumerate(_TOKENS):
        vectors = [table[t] for t in tokens if t > 1]
        for place in range(4 if buckets else 0):
            if min(tokens[place : place + 2]) > 1:
                assert 7 <= pairs[row, place] < 18
                vectors.append(table[pairs[row, place]])
        expected = np.mean(vectors, axis=0) if vectors else np.zeros(3)
        np.testing.assert_allclose(found[row], expected, atol=1e-6)


def test_pairs_are_spread_and_have_an_order():
    layer = AveragedWords(50_000, 2, buckets=1000)
    rng = np.random.default_rng(0)
    words = rng.integers(2, 50_000, [20_000, 2]).astype(np.int32)
    places = layer.pairs(tf.constant(words)).numpy()[:, 0] - 50_000
    counts = np.bincount(places, minlength=1000)
    assert ((counts - 20) ** 2 / 20).sum() < 999 + 6 * np.sqrt(2 * 999)  # chi square
    turned = layer.pairs(tf.constant(words[:, ::-1].copy())).numpy()[:, 0] - 50_000
    assert (turned != places).mean() > 0.99


def test_gradients_are_of_rows():
    layer = AveragedWords(7, 3, buckets=11)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(_TOKENS))
    gradient = tape.gradient(loss, layer.table.value)
    assert isinstance(gradient, tf.IndexedSlices)
    dense = tf.convert_to_tensor(gradient).numpy()
    assert not dense[:2].any() and (dense[2:7].any(axis=1)).all()


def test_convolutions_by_loops():
    layer = ConvolutionalText(7, 4, 3, sizes=(1, 3), seed=1)
    found = layer(_TOKENS[:2]).numpy()
    table = layer.embedding.get_weights()[0]
    for row, tokens in enumerate(_TOKENS[:2]):
        words = [table[t] for t in tokens if t]
        expected = []
        for convolution, size in zip(layer.convolutions, (1, 3), strict=True):
            kernel, bias = convolution.get_weights()
            none = [np.zeros(4)] * (size - 1)
            padded = [*none, *words, *none]
            values = [
                np.einsum("tc,tcf->f", np.array(padded[i : i + size]), kernel) + bias
                for i in range(len(padded) - size + 1)
            ]
            expected.append(np.maximum(np.max(values, axis=0), 0))
        np.testing.assert_allclose(found[row], np.concatenate(expected), atol=1e-6)


def test_mistakes():
    with pytest.raises(ValueError, match="buckets"):
        AveragedWords(7, 3, buckets=-1)
    with pytest.raises(ValueError, match="`sizes` must name at least one"):
        ConvolutionalText(7, 3, 2, sizes=())
    with pytest.raises(ValueError, match="dropout"):
        ConvolutionalText(7, 3, 2, dropout=1.0)


def test_both_directions_by_loops():
    layer = RecurrentText(7, 4, LSTMCell(3, seed=2), seed=1)
    found = layer(_TOKENS).numpy()
    table = layer.embedding.embeddings.numpy()
    for row, tokens in enumerate(_TOKENS[:2]):
        words = [t for t in tokens if t]
        expected = []
        for cell, own in (
            (layer.forwards.cell, words),
            (layer.backwards.cell, words[::-1]),
        ):
            states = cell.get_initial_state(batch_size=1)
            outputs = []
            for token in own:
                output, states = cell(tf.constant(table[[token]]), states)
                outputs.append(output.numpy()[0])
            expected.append(np.max(outputs, axis=0))
        np.testing.assert_allclose(found[row], np.concatenate(expected), atol=1e-6)


def test_the_mean_is_of_tokens_alone():
    layer = PooledEncoder(_encoder())
    found = layer(_TOKENS).numpy()
    features = layer.encoder(_TOKENS).numpy()
    for row, tokens in enumerate(_TOKENS[:2]):
        expected = features[row, tokens != 0].mean(axis=0)
        np.testing.assert_allclose(found[row], expected, atol=1e-6)


def test_recurrent_and_pooled_mistakes():
    with pytest.raises(ValueError, match="`cell` must be an rlm_tf"):
        RecurrentText(7, 4, 3)
    with pytest.raises(ValueError, match="`encoder` must be an rlm_tf"):
        PooledEncoder([])
    with pytest.raises(ValueError, match="`pooling` must be one of cls, mean"):
        PooledEncoder(_encoder(), pooling="max")
