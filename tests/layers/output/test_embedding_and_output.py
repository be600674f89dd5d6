"""Token embedding, softmax output, and initialisers with seeds."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.checks import plain_errors
from rlm_tf.evaluation import evaluate
from rlm_tf.layers import MixtureSoftmaxOutput, SoftmaxOutput, TokenEmbedding
from rlm_tf.models import RecurrentLanguageModel
from rlm_tf.seeds import SeededInitializers

V, D = 6, 3


def test_embedding_gradient_is_dense_and_adds_repeated_tokens():
    layer = TokenEmbedding(V, D)
    layer.build((None, None))
    with tf.GradientTape() as tape:
        rows = layer(tf.constant([[4, 1], [4, 4]]))
        loss = tf.reduce_sum(rows * tf.constant([[[1.0], [2.0]], [[3.0], [4.0]]]))
    gradient = tape.gradient(loss, layer.embeddings.value)
    assert isinstance(gradient, tf.Tensor)
    expected = np.zeros((V, D))
    expected[4], expected[1] = 8.0, 2.0
    np.testing.assert_array_equal(gradient, expected)
    np.testing.assert_array_equal(rows[0, 1], layer.get_weights()[0][1])


def test_embedding_in_half_precision_keeps_single_precision_gradients():
    layer = TokenEmbedding(V, D, dtype="mixed_bfloat16")
    layer.build((None, None))
    with tf.GradientTape() as tape:
        rows = layer(tf.constant([0, 0]))
        loss = tf.reduce_sum(tf.cast(rows, tf.float32))
    assert rows.dtype == tf.bfloat16
    gradient = tape.gradient(loss, layer.embeddings.value)
    assert gradient.dtype == tf.float32
    np.testing.assert_array_equal(gradient[0], np.full(D, 2.0))


@pytest.mark.parametrize("own_kernel", [True, False])
@pytest.mark.parametrize("use_bias", [True, False])
def test_loss_is_the_cross_entropy_of_the_logits(rng, own_kernel, use_bias):
    layer = SoftmaxOutput(
        V, use_bias=use_bias, own_kernel=own_kernel, bias_initializer="random_normal"
    )
    layer.build((None, None, D))
    features = tf.constant(rng.normal(size=(2, 4, D)), tf.float32)
    tied = None if own_kernel else tf.constant(rng.normal(size=(V, D)), tf.float32)
    targets = tf.constant(rng.integers(V, size=(2, 4)), tf.int32)
    logits = layer(features, tied_kernel=tied)
    loss = layer(features, targets=targets, tied_kernel=tied)
    assert logits.shape == (2, 4, V)
    kernel = layer.get_weights()[0] if own_kernel else tied.numpy()
    expected = features.numpy() @ kernel.T
    if use_bias:
        expected += layer.get_weights()[-1]
    np.testing.assert_allclose(logits, expected, rtol=1e-5, atol=1e-6)
    expected_loss = tf.nn.sparse_softmax_cross_entropy_with_logits(targets, logits)
    np.testing.assert_allclose(loss, expected_loss, rtol=1e-5, atol=1e-6)
    assert len(layer.weights) == own_kernel + use_bias


@pytest.mark.parametrize(
    "layer",
    [
        TokenEmbedding(V, D, initializer="he_normal"),
        SoftmaxOutput(V, use_bias=False, own_kernel=False, bias_initializer="ones"),
    ],
)
def test_config_round_trip(layer):
    copy = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(layer)
    )
    assert type(copy) is type(layer)
    assert copy.get_config() == layer.get_config()


def test_seeded_initialisers_differ_from_each_other_but_not_from_run_to_run():
    def draw(seed):
        initializers = SeededInitializers(keras.initializers.RandomUniform(-1, 1), seed)
        return [np.array(initializers.next()((2, 3))) for _ in range(2)]

    first, second = draw(1)
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(draw(1), [first, second])
    assert not np.array_equal(draw(2)[0], first)
    assert SeededInitializers(keras.initializers.Zeros(), 1).next()((1,)) == 0


@pytest.mark.parametrize("components", [1, 2])
def test_more_logits_than_an_array_may_hold_are_refused(components):
    """20 rows of 10,000 words, before anything of that size is made."""
    words = 2**31 // (200_000 * components) + 1
    if components == 1:
        layer, width = SoftmaxOutput(words), 1
    else:
        layer, width = MixtureSoftmaxOutput(words, 2), 4
    layer.build((None, None, width))
    features = tf.zeros([20, 10_000, width])
    message = (
        r"numbers, 8.0 GiB .* choose a smaller `window` or `batch_size`. Positions .* "
        rf"must be at most \d{{3}},\d{{3}}, found {2 * components}00000\."
    )
    targets = tf.zeros([20, 10_000], tf.int32)
    with pytest.raises(ValueError, match=message):
        layer(features)
    with pytest.raises(ValueError, match=message):
        layer(features, targets=targets)
    unknown = tf.TensorSpec([None, None, width]), tf.TensorSpec([None, None], tf.int32)

    @tf.function(input_signature=unknown[:1])
    def logits(features):
        return layer(features)

    @tf.function(input_signature=unknown)
    def slope(features, targets):
        with tf.GradientTape() as tape:
            loss = layer(features, targets=targets)
        return tape.gradient(loss, layer.kernel)

    for step in (lambda: logits(features), lambda: slope(features, targets)):
        with pytest.raises(ValueError, match=message), plain_errors():
            step()
    assert logits(features[:1, :2]).shape == [1, 2, words]


def test_a_window_that_is_too_large_is_named_before_it_is_read():
    model = RecurrentLanguageModel(10_738, 2, 1, jit_loop=False)
    with pytest.raises(ValueError, match=r"Output: .*`window` or.* found 200000\."):
        evaluate(model, np.arange(100), 20, 10_000, prefix=0)
