"""Masked language models: the loss by loops, what counts, learning, files, mistakes."""

from __future__ import annotations

import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.models import MaskedLanguageModel
from tests.models.encoders.toy import VOCABULARY, encoder, masked, texts
from tests.references import transformer as reference
from tests.references.layers import set_random_weights


def _model(**options):
    model = MaskedLanguageModel(encoder(dtype="float64"), **options)
    set_random_weights(model.head)
    return model


def _loss(model, batch, training=False):
    terms = model.objective_terms(batch, None, None, training=training)
    loss, weights = terms["nll"].loss, terms["nll"].weights
    return float(tf.reduce_sum(loss * tf.cast(weights, loss.dtype))), float(
        tf.reduce_sum(weights)
    )


def test_loss_by_loops():
    model, batch = _model(), masked(texts())
    tokens, shown, positions = batch
    features = model.encoder(shown).numpy()
    kernel, bias = (w.numpy() for w in model.head.dense.weights)
    scale, offset = (w.numpy() for w in model.head.norm.weights)
    matrix = model.encoder.embedding.token_embedding.embeddings.numpy()
    total = right = 0.0
    for row, column in np.argwhere(positions):
        hidden = reference.gelu(features[row, column] @ kernel + bias)
        centred = hidden - hidden.mean()
        hidden = centred / np.sqrt(centred.var() + 1e-6) * scale + offset
        logits = matrix @ hidden + model.head.output_layer.bias.numpy()
        total += math.log(np.exp(logits).sum()) - logits[tokens[row, column]]
        right += np.argmax(logits) == tokens[row, column]
    assert _loss(model, batch) == pytest.approx((total, positions.sum()), rel=1e-7)
    model.compile("sgd", run_eagerly=True)
    found = model.evaluate(batch, verbose=0, return_dict=True, batch_size=6)
    mean = total / positions.sum()
    assert found["nll"] == pytest.approx(mean, rel=1e-6)
    assert found["perplexity"] == pytest.approx(math.exp(mean), rel=1e-5)
    assert found["accuracy"] == pytest.approx(right / positions.sum())


def test_a_fixed_number_of_positions_changes_nothing():
    batch = masked(texts())
    most = int(batch[2].sum(1).max())
    losses = []
    gradients = []
    for given in (None, most, most + 3):
        model = _model(max_positions=given)
        with tf.GradientTape() as tape:
            terms = model.objective_terms(batch, None, None, training=True)["nll"]
            weights = tf.cast(terms.weights, tf.float64)
            loss = tf.reduce_sum(terms.loss * weights) / tf.reduce_sum(weights)
        losses.append(float(loss))
        (gradient,) = tape.gradient(
            loss, [model.encoder.blocks[0].network_hidden.kernel]
        )
        gradients.append(gradient.numpy())
    assert losses == pytest.approx([losses[0]] * 3, rel=1e-12)
    for gradient in gradients[1:]:
        np.testing.assert_allclose(gradient, gradients[0], rtol=1e-8, atol=1e-14)
    with pytest.raises(ValueError, match="`max_positions` is less than a row has"):
        _loss(_model(max_positions=most - 1), batch)
    with pytest.raises(ValueError, match="`jit_compile=True` needs `max_positions`"):
        _model().compile("sgd", jit_compile=True)


def test_calling_gives_logits_of_every_token():
    model, batch = _model(), masked(texts())
    logits = model(batch[1])
    assert logits.shape == (6, 10, VOCABULARY)
    np.testing.assert_array_equal(model(batch), logits)
    places = np.argwhere(batch[2])
    np.testing.assert_allclose(
        model.logits_at(batch[1], places), tf.gather_nd(logits, places), rtol=1e-9
    )
    paired = MaskedLanguageModel(encoder(num_segments=2))
    first, second = (
        paired((batch[1], np.full_like(batch[1], number))) for number in (0, 1)
    )
    assert not np.allclose(first, second)
    with_segments = (*batch, np.ones_like(batch[1]))
    np.testing.assert_array_equal(paired(with_segments), second)


def test_it_learns_what_can_be_learnt():
    """Every second piece repeats the one before: half of what is masked is known."""
    rng = np.random.default_rng(3)
    tokens = np.repeat(rng.integers(5, VOCABULARY, [64, 4]), 2, axis=1)
    tokens = np.pad(tokens, [(0, 0), (1, 0)], constant_values=2).astype(np.int32)
    model = MaskedLanguageModel(
        encoder(width=16, num_heads=2, embedding_width=16, initializer_range=0.1)
    )
    model.compile(keras.optimizers.Adam(0.01))
    first = last = None
    for step in range(60):
        last = model.train_on_batch(masked(tokens, 0.15, step), return_dict=True)
        first = first or last
    assert first["nll"] > 2.6 and last["nll"] < 2.4


def test_a_batch_without_masked_tokens():
    tokens = texts()
    batch = (tokens, tokens, np.zeros_like(tokens))
    model = MaskedLanguageModel(encoder())
    model.compile(keras.optimizers.SGD(1.0), run_eagerly=True)
    before = model.get_weights()
    logs = model.train_on_batch(batch, return_dict=True)
    assert logs["nll"] == 0
    for old, new in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ((texts(), texts()), "expected batches `(.*)`, perhaps with segments behind"),
        ((texts(), texts(), texts(5)), "axis B of `positions` is 5, expected 6"),
        ((texts() + 15, texts(), texts()), "`tokens` must be ids of the model's"),
    ],
)
def test_mistakes(batch, message):
    with pytest.raises(ValueError, match=message):
        _loss(_model(), batch)
    with pytest.raises(ValueError, match=r"must be an rlm_tf\.layers\.Transformer"):
        MaskedLanguageModel(keras.layers.Dense(3))
