"""The block of a transformer against loops in float64."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.layers import TransformerBlock
from rlm_tf.layers.transformer.rotary import rotate
from tests.references import transformer as reference

WIDTH, HEADS, CONTEXT = 8, 2, 3
_PARTS = (
    "attention_norm",
    "query_key_value",
    "attention_output",
    "network_norm",
    "network_hidden",
    "network_output",
)


def make(dtype="float64", **options) -> TransformerBlock:
    block = TransformerBlock(
        WIDTH, HEADS, CONTEXT, hidden_width=10, seed=1, dtype=dtype, **options
    )
    block.build((None, None, WIDTH))
    rng = np.random.default_rng(2)
    for weight in block.weights:
        if "seed" not in weight.path:
            weight.assign(rng.normal(size=weight.shape) * 0.5)
    return block


def weights_of(block) -> dict:
    found = {
        name: [weight.numpy() for weight in getattr(block, name).weights]
        for name in _PARTS
    }
    if block.positions == "learnt":
        found["distance_bias"] = block.distance_bias.numpy()
    return found


X = np.random.default_rng(3).normal(size=(2, 9, WIDTH))


@pytest.mark.parametrize("positions", ["rotary", "learnt"])
@pytest.mark.parametrize("causal", [True, False])
def test_it_is_the_sum_over_tokens_and_heads(positions, causal):
    block = make(positions=positions, causal=causal)
    mask = np.ones((2, 9), bool)
    mask[1, 4] = False
    found = block(tf.constant(X), visible=tf.constant(mask))
    for row in range(2):
        expected = reference.block(
            weights_of(block),
            X[row],
            HEADS,
            CONTEXT,
            causal=causal,
            positions=positions,
            mask=mask[row],
        )
        # A row of nothing to see is of no use: its own token is hidden.
        used = mask[row] | (not causal) | np.array([t != 4 for t in range(9)])
        np.testing.assert_allclose(found[row][used], expected[used], rtol=1e-5)


@pytest.mark.parametrize("positions", ["rotary", "learnt"])
@pytest.mark.parametrize("sizes", [(9,), (1,) * 9, (4, 1, 4), (2, 7)])
def test_pieces_with_a_cache_are_the_whole(positions, sizes):
    block = make(positions=positions)
    whole = block(tf.constant(X))
    cache, first, parts = block.empty_cache(2), 0, []
    for size in sizes:
        part, cache = block(tf.constant(X[:, first : first + size]), cache)
        parts.append(part)
        first += size
    np.testing.assert_allclose(tf.concat(parts, 1), whole, rtol=1e-5)
    np.testing.assert_array_equal(cache.present, 1.0)


def test_gradients_are_those_of_finite_differences():
    block = make()
    x = tf.constant(X[:1, :4])
    mix = np.random.default_rng(4).normal(size=x.shape)
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = tf.reduce_sum(block(x) * mix)
    gradients = tape.gradient(loss, [x, *(w.value for w in block.trainable_weights)])
    direction = np.random.default_rng(5)
    step = 1e-6
    for weight, gradient in zip(block.trainable_weights, gradients[1:], strict=True):
        move = direction.normal(size=weight.shape)
        kept = weight.numpy()
        values = []
        for sign in (1, -1):
            weight.assign(kept + sign * step * move)
            values.append(float(tf.reduce_sum(block(x) * mix)))
        weight.assign(kept)
        expected = (values[0] - values[1]) / (2 * step)
        assert np.sum(gradient * move) == pytest.approx(expected, rel=1e-5, abs=1e-7)


def test_turned_products_depend_on_the_distance_alone():
    rng = np.random.default_rng(6)
    query, key = rng.normal(size=(2, 1, 1, 1, 6))
    products = []
    for shift in (0, 5, 100):
        turned = [
            rotate(tf.constant(part), tf.constant([place + shift]))
            for part, place in ((query, 7), (key, 3))
        ]
        products.append(float(tf.reduce_sum(turned[0] * turned[1])))
    assert products == pytest.approx([products[0]] * 3, rel=1e-4)
    found = rotate(tf.constant(query), tf.constant([7]))[0, 0, 0]
    np.testing.assert_allclose(found, reference.turned(query[0, 0, 0], 7), rtol=1e-5)


def test_dropout_acts_in_training_alone():
    block = make("float32", dropout=0.5)
    x = tf.constant(X, tf.float32)
    np.testing.assert_array_equal(block(x), block(x))
    assert not np.allclose(block(x, training=True), block(x))


def test_a_file_has_all_of_it(tmp_path):
    inputs = keras.Input((None, WIDTH))
    block = make("float32", positions="learnt", dropout=0.1)
    model = keras.Model(inputs, block(inputs))
    model.save(tmp_path / "a.keras")
    loaded = keras.saving.load_model(tmp_path / "a.keras")
    np.testing.assert_array_equal(loaded(X), model(X))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 7}, "`width` must be a multiple of `num_heads`, found 7 and 2"),
        ({"width": 6}, "heads of an even width, found 6 / 2"),
        ({"positions": "sine"}, "`positions` must be one of rotary, learnt"),
        ({"dropout": 1.0}, r"`dropout` must lie in \[0, 1\), found 1"),
        ({"context_length": 0}, "context_length"),
    ],
)
def test_mistakes_are_named(options, message):
    given = {"width": 8, "num_heads": 2, "context_length": 3, **options}
    with pytest.raises(ValueError, match=message):
        TransformerBlock(**given)


def test_a_block_that_sees_all_has_no_cache():
    block = make(causal=False)
    with pytest.raises(ValueError, match="has no cache"):
        block(tf.constant(X), make().empty_cache(2))
