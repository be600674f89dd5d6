"""The VQ-VAE and its quantiser: nearest codes, straight-through, moving averages."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.layers import SymbolDecoder, SymbolEncoder, VectorQuantizer
from rlm_tf.models import VectorQuantizedVAE

_X = np.array([3, 1, 6, 1], np.int32)


def _model(**options) -> VectorQuantizedVAE:
    return VectorQuantizedVAE(
        SymbolEncoder(7, 5, seed=1),
        VectorQuantizer(2, 3, 4, decay=0.8, seed=2),
        SymbolDecoder(7, 8, 5, num_layers=1, seed=3),
        **{"commitment": 0.5, "seed": 4, **options},
    )


def test_nearest_codes_and_their_gradients(rng):
    layer = VectorQuantizer(2, 5, 3, seed=1)
    inputs = tf.constant(rng.normal(size=(6, 2, 3)), tf.float32)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(inputs)
        found = layer(inputs)
    books = layer.codebooks().numpy()
    distances = ((inputs.numpy()[:, :, None] - books) ** 2).sum(-1)
    np.testing.assert_array_equal(found.codes, distances.argmin(-1))
    np.testing.assert_allclose(found.commitment, distances.min(-1).sum(-1), rtol=1e-5)
    nearest = np.take_along_axis(
        np.broadcast_to(books, (6, 2, 5, 3)), found.codes.numpy()[..., None, None], 2
    )[:, :, 0]
    np.testing.assert_allclose(found.vectors, nearest, atol=1e-6)
    upstream = tf.constant(rng.normal(size=(6, 2, 3)), tf.float32)
    through = tape.gradient(found.vectors, inputs, output_gradients=upstream)
    np.testing.assert_array_equal(through, upstream)
    own = tape.gradient(found.commitment, inputs)
    np.testing.assert_allclose(own, 2 * (inputs - nearest), atol=1e-5)


def test_codes_are_moving_averages_of_what_they_are_nearest_to(rng):
    layer = VectorQuantizer(1, 3, 2, decay=0.9, seed=1)
    counts, sums = np.ones(3), layer.codebooks().numpy()[0].astype(np.float64)
    for _ in range(4):
        inputs = rng.normal(size=(20, 1, 2)).astype(np.float32)
        before = layer(inputs).codes.numpy()[:, 0]
        layer(inputs, training=True)
        counts = 0.9 * counts + 0.1 * np.bincount(before, minlength=3)
        for code in range(3):
            total = inputs[before == code, 0].sum(axis=0)
            sums[code] = 0.9 * sums[code] + 0.1 * total
        np.testing.assert_allclose(
            layer.codebooks()[0], sums / counts[:, None], rtol=1e-4, atol=1e-5
        )


def test_a_code_that_nothing_is_near_to_stays():
    layer = VectorQuantizer(1, 3, 2, decay=0.5, seed=1)
    books = layer.codebooks().numpy()
    near = tf.constant(books[:, :1] + 0.01)

    @tf.function
    def move():
        # Long enough for the moving averages of the other two to vanish.
        for _ in tf.range(300):
            layer(near, training=True)

    move()
    assert layer.counts.numpy()[0, 1:].max() == 0
    after = layer.codebooks().numpy()
    np.testing.assert_array_equal(after[0, 1:], books[0, 1:])
    np.testing.assert_allclose(after[0, 0], near[0, 0], rtol=1e-5)
    # One of them is used again, and is what it was used for.
    layer(tf.constant(books[:, 1:2] + 0.02), training=True)
    np.testing.assert_allclose(layer.codebooks()[0, 1], books[0, 1] + 0.02, rtol=1e-5)


def test_rows_count_in_the_codes_with_their_weights(rng):
    inputs = rng.normal(size=(4, 1, 2)).astype(np.float32)
    weighted, repeated, other = (VectorQuantizer(1, 3, 2, seed=1) for _ in range(3))
    weighted(inputs, training=True, weights=tf.constant([1.0, 0.0, 2.0, 0.0]))
    repeated(inputs[[0, 2, 2]], training=True)
    np.testing.assert_allclose(weighted.codebooks(), repeated.codebooks(), rtol=1e-5)
    model, data = _model(), (np.arange(4, dtype=np.int32), None, np.zeros(4))
    before = model.quantizer.codebooks().numpy()
    model.compile(keras.optimizers.SGD(0.1))
    model.fit(tf.data.Dataset.from_tensors(data), verbose=0)
    np.testing.assert_array_equal(model.quantizer.codebooks(), before)
    other(inputs, training=True)
    assert np.abs(other.codebooks() - weighted.codebooks()).max() > 1e-3


def test_all_codes_of_a_wide_book_are_used_from_the_start():
    """Codes much longer than what is quantised would all lose to the shortest."""
    model = VectorQuantizedVAE(
        SymbolEncoder(200, 64, seed=1),
        VectorQuantizer(3, 4, 64, seed=2),
        SymbolDecoder(200, 3 * 64, 64, seed=3),
    )
    codes = model(np.arange(200, dtype=np.int32)).codes.numpy()
    shares = np.array([np.bincount(column, minlength=4) / 200 for column in codes.T])
    assert shares.min() > 0.02


def test_the_bound_has_the_fixed_rate():
    model = _model()
    loss, found = model.bound(_X)
    latents = found.vectors[tf.newaxis]
    expected = 2 * np.log(3) - model.decoder(latents, _X)[0]
    np.testing.assert_allclose(loss, expected, rtol=1e-6)
    assert model.rate == pytest.approx(2 * np.log(3))


def test_training_lowers_the_bound_and_files_keep_the_codes(tmp_path):
    model = _model()
    model.compile(keras.optimizers.Adam(0.02))
    data = tf.data.Dataset.from_tensors(np.arange(7, dtype=np.int32)).repeat(60)
    first = model.evaluate(data.take(1), verbose=0, return_dict=True)
    model.fit(data, verbose=0)
    last = model.evaluate(data.take(1), verbose=0, return_dict=True)
    assert last["objective"] < first["objective"] - 0.5
    assert last["loss"] == pytest.approx(
        last["objective"] + 0.5 * last["commitment"], rel=1e-5
    )
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(_X).codes, model(_X).codes)
    np.testing.assert_allclose(loaded.bound(_X)[0], model.bound(_X)[0], rtol=1e-6)


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16", "float64"])
def test_other_precisions_train(policy):
    model = VectorQuantizedVAE(
        SymbolEncoder(7, 5, seed=1, dtype=policy),
        VectorQuantizer(2, 3, 4, decay=0.8, seed=2, dtype=policy),
        SymbolDecoder(7, 8, 5, num_layers=1, seed=3, dtype=policy),
        dtype=policy,
    )
    single = _model()
    model.set_weights(single.get_weights())
    found, expected = (float(tf.reduce_mean(m.bound(_X)[0])) for m in (model, single))
    assert found == pytest.approx(expected, rel=0.02)
    model.compile(keras.optimizers.Adam(0.02))
    data = tf.data.Dataset.from_tensors(_X).repeat(30)
    history = model.fit(data, epochs=2, verbose=0).history["objective"]
    assert history[1] < history[0]
    assert model.quantizer.codebooks().dtype == tf.float32


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="`decay` must lie in"):
        VectorQuantizer(1, 2, 3, decay=1.0)
    with pytest.raises(ValueError, match="`commitment` must be finite"):
        _model(commitment=-1.0)
    with pytest.raises(ValueError, match=r"5 entries, `quantizer` makes 6 \(\[2, 3\]"):
        VectorQuantizedVAE(
            SymbolEncoder(5, 4), VectorQuantizer(2, 3, 3), SymbolDecoder(5, 5, 4)
        )
    with pytest.raises(ValueError, match="`inputs`"):
        VectorQuantizer(1, 2, 3)(np.zeros([2, 2, 3], np.float32))
