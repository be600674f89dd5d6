"""Decoders of latents refuse what does not fit, at once and while graphs are traced."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.layers import LSTMCell, SentenceDecoder, SymbolDecoder

_SYMBOLS = np.array([1, 0, 4], np.int32)
_SENTENCES = np.array([[1, 0], [2, 0], [0, -1]], np.int32)
_DECODERS = {
    "SymbolDecoder": (lambda: SymbolDecoder(5, 6, 4), _SYMBOLS),
    "SentenceDecoder": (lambda: SentenceDecoder(5, 6, LSTMCell(4)), _SENTENCES),
}


def _latents(*shape):
    return np.zeros(shape, np.float32)


@pytest.mark.parametrize("name", _DECODERS)
@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize(
    ("shape", "message"),
    [
        # 2 samples of 6 entries are as many numbers as 4 of 3.
        ((4, 3, 3), r"must have 6 entries an example, found 3 \(shape \[4, 3, 3\]\)"),
        ((2, 3, 2, 6), "must have 6 entries an example, found 12"),
        ((3, 6), r"`latents` must have axes \[K B ...\], found shape \[3, 6\]"),
        ((2, 4, 6), "`latents` are of 4 examples, `[a-z]*` of 3"),
        ((2, 1, 6), "`latents` are of 1 examples, `[a-z]*` of 3"),
    ],
)
def test_latents_of_other_shapes_are_refused(name, traced, shape, message):
    make, x = _DECODERS[name]
    call = make().__call__
    with pytest.raises(ValueError, match=f"{name}: .*{message}"):
        (tf.function(call) if traced else call)(_latents(*shape), x)


@pytest.mark.parametrize("name", _DECODERS)
def test_latents_may_have_axes_and_sizes_that_are_not_known(name):
    make, x = _DECODERS[name]
    decoder = make()
    expected = decoder(_latents(2, 3, 6), x)
    np.testing.assert_array_equal(decoder(_latents(2, 3, 2, 3), x), expected)
    specs = tf.TensorSpec([None, None, 6]), tf.TensorSpec([None, *x.shape[1:]], x.dtype)
    traced = tf.function(lambda z, x: decoder(z, x), input_signature=specs)
    np.testing.assert_allclose(traced(_latents(2, 3, 6), x), expected, rtol=1e-6)


def test_symbols_are_ids_one_an_example():
    decoder = SymbolDecoder(5, 6, 4)
    with pytest.raises(ValueError, match="`symbols` must be integer ids, found"):
        decoder(_latents(2, 3, 6), _SYMBOLS.astype(np.float32))
    with pytest.raises(ValueError, match=r"`symbols` must have axes \[B\]"):
        decoder(_latents(2, 3, 6), _SYMBOLS[:, np.newaxis])
