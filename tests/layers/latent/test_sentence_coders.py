"""Encoder and decoder of sentences, word by word and without padding."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.layers import (
    LSTMCell,
    SentenceDecoder,
    SentenceEncoder,
    SymbolDecoder,
    SymbolEncoder,
)

_SIZE = 7
_SENTENCES = np.array([[3, 1, 4, 5, 0], [2, 0, -1, -1, -1], [5, 5, 6, 0, -1]], np.int32)
_LATENTS = np.random.default_rng(2).normal(size=(4, 3, 2)).astype(np.float32)


def _decoder(**options):
    cell = LSTMCell(5, state_dropout=options.pop("state_dropout", 0.0))
    return SentenceDecoder(_SIZE, 2, cell, seed=3, **options)


def _lengths():
    return (_SENTENCES >= 0).sum(axis=1)


def test_encoder_reads_every_sentence_in_both_directions():
    encoder = SentenceEncoder(_SIZE, LSTMCell(5), embedding_width=4, seed=3)
    found = encoder(_SENTENCES)
    for row, length in enumerate(_lengths()):
        words = _SENTENCES[row : row + 1, :length]
        states = []
        for layer, order in ((encoder.forward, 1), (encoder.backward, -1)):
            inputs = tf.transpose(encoder.embedding(words[:, ::order]), [1, 0, 2])
            states.append(layer(inputs)[1][0][0])
        np.testing.assert_allclose(found[row], np.mean(states, axis=0), atol=1e-6)
        alone = encoder(words)[0]
        np.testing.assert_allclose(found[row], alone, atol=1e-6)


@pytest.mark.parametrize("options", [{}, {"tied": True, "embedding_width": 4}])
def test_decoder_word_by_word(options):
    decoder = _decoder(**options)
    found = decoder(_LATENTS, _SENTENCES).numpy()
    assert found.shape == (4, 3)
    for k in range(4):
        for b, length in enumerate(_lengths()):
            added = decoder.latent_map(_LATENTS[k, b][np.newaxis])
            states, previous, total = None, 0, 0.0
            for word in _SENTENCES[b, :length]:
                inputs = decoder.embedding(tf.constant([[previous]])) + added
                outputs, states = decoder.recurrent(inputs, states)
                if decoder.projection is not None:
                    outputs = decoder.projection(outputs)
                log_probs = tf.nn.log_softmax(decoder.logits(outputs)[0, 0])
                total += float(log_probs[word])
                previous = int(word)
            assert found[k, b] == pytest.approx(total, rel=1e-5)
    # Padding says nothing, however much of it there is.
    padded = np.pad(_SENTENCES, [(0, 0), (0, 2)], constant_values=-1)
    np.testing.assert_allclose(decoder(_LATENTS, padded), found, rtol=1e-6)


_RATES = {"input_dropout": 0.4, "state_dropout": 0.4, "output_dropout": 0.4}


@pytest.mark.parametrize("name", _RATES)
def test_samples_share_masks_unless_told_otherwise(name):
    """Equal latents: equal losses under shared masks, others without."""
    latents = np.repeat(_LATENTS[:1], 4, axis=0)
    rates = {name: _RATES[name]}
    shared = _decoder(**rates)(latents, _SENTENCES, training=True).numpy()
    apart = _decoder(**rates, shared_dropout=False)(
        latents, _SENTENCES, training=True
    ).numpy()
    np.testing.assert_allclose(shared, shared[:1].repeat(4, axis=0), rtol=1e-5)
    assert np.ptp(apart, axis=0).max() > 1e-3
    without = _decoder()(latents, _SENTENCES).numpy()
    np.testing.assert_allclose(_decoder(**rates)(latents, _SENTENCES), without)
    assert np.abs(shared - without).max() > 1e-3
    # Sentences have masks of their own.
    same = np.repeat(_SENTENCES[:1], 3, axis=0)
    latents = np.repeat(latents[:, :1], 3, axis=1)
    rows = _decoder(**rates)(latents, same, training=True).numpy()
    assert np.ptp(rows, axis=1).max() > 1e-3


def test_masks_have_their_rates():
    decoder = _decoder(input_dropout=0.3)
    values = decoder._dropped(tf.ones([50, 12, 20]), 0.3, 4).numpy()
    np.testing.assert_allclose(np.unique(values), [0, 1 / 0.7], rtol=1e-6)
    assert (values == 0).mean() == pytest.approx(0.3, abs=0.03)


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="`input_dropout` must lie in"):
        _decoder(input_dropout=1.0)
    with pytest.raises(ValueError, match="`end_id` must lie in"):
        SentenceDecoder(_SIZE, 2, LSTMCell(5), end_id=7)
    with pytest.raises(ValueError, match="`tokens` must be integer ids"):
        _decoder()(_LATENTS, _SENTENCES.astype(np.float32))
    with pytest.raises(ValueError, match="`tokens` must have axes"):
        SentenceEncoder(_SIZE, LSTMCell(5))(_SENTENCES[0])


@pytest.mark.parametrize("value", [_SIZE, -2])
def test_ids_of_no_word(value):
    sentences = _SENTENCES.copy()
    sentences[0, 1] = value
    message = rf"`tokens` must be ids .* with -1 behind .* in \[0, 7\), found {value}"
    with pytest.raises(ValueError, match=message):
        SentenceEncoder(_SIZE, LSTMCell(5))(sentences)
    with pytest.raises(ValueError, match=message):
        _decoder()(_LATENTS, sentences)


@pytest.mark.parametrize("value", [4, -1])
def test_symbols_that_there_are_not(value):
    with pytest.raises(ValueError, match=rf"`symbols` .* \[0, 4\), found {value}"):
        SymbolEncoder(4, 3)(np.array([0, value, 3]))
    with pytest.raises(ValueError, match=rf"`symbols` .* \[0, 4\), found {value}"):
        SymbolDecoder(4, 2, 3)(_LATENTS, np.array([0, value, 3]))
