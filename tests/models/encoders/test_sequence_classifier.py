"""Classifiers of texts: losses by loops, learning, rates by layers, mistakes."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf.models import (
    Electra,
    InBatchContexts,
    InducedFineTuning,
    MaskedLanguageModel,
    SampledPrefixes,
    SequenceClassifier,
    layerwise_decay,
)
from rlm_tf.optimizers import LinearDecay
from rlm_tf.restricted import KneserNey
from tests.models.encoders.toy import VOCABULARY, encoder, masked, texts
from tests.references import transformer as reference
from tests.references.layers import set_random_weights

_TOKENS = texts()
_LABELS = np.array([0, 2, 1, 1, 0, 2], np.int32)


def make(num_classes=3, pooling="cls", **options):
    model = SequenceClassifier(
        encoder(num_layers=2, dtype="float64", **options),
        num_classes,
        dropout=0.0,
        pooling=pooling,
    )
    set_random_weights(model.dense_layer)
    set_random_weights(model.logits_layer)
    return model


def _by_loops(model):
    first = model.encoder(_TOKENS).numpy()[:, 0]
    (kernel, bias), (out, offset) = (
        [w.numpy() for w in layer.weights]
        for layer in (model.dense_layer, model.logits_layer)
    )
    return reference.gelu(first @ kernel + bias) @ out + offset


def test_cross_entropy_by_loops():
    model = make()
    logits = _by_loops(model)
    np.testing.assert_allclose(model(_TOKENS), logits, rtol=1e-6)
    losses = np.log(np.exp(logits).sum(1)) - logits[np.arange(6), _LABELS]
    weights = np.array([1, 0.5, 2, 0, 1, 1.0])
    model.compile("sgd", run_eagerly=True)
    found = model.evaluate(
        _TOKENS, _LABELS, sample_weight=weights, verbose=0, return_dict=True
    )
    expected = np.average(losses, weights=weights)
    assert found["nll"] == pytest.approx(expected, rel=1e-6)
    right = np.average(logits.argmax(1) == _LABELS, weights=weights)
    assert found["accuracy"] == pytest.approx(right) and set(found) == {
        "loss",
        "nll",
        "accuracy",
    }


def test_the_mean_over_what_is_no_padding():
    model = make(pooling="mean")
    hidden = model.encoder(_TOKENS).numpy()
    pooled = np.stack(
        [
            row[tokens != 0].mean(axis=0)
            for row, tokens in zip(hidden, _TOKENS, strict=True)
        ]
    )
    (kernel, bias), (out, offset) = (
        [w.numpy() for w in layer.weights]
        for layer in (model.dense_layer, model.logits_layer)
    )
    expected = reference.gelu(pooled @ kernel + bias) @ out + offset
    np.testing.assert_allclose(model(_TOKENS), expected, rtol=1e-6)
    assert (_TOKENS == 0).any()
    with pytest.raises(ValueError, match="pooling"):
        make(pooling="max")


def test_squared_error_by_loops():
    model = make(None)
    numbers = _by_loops(model)[:, 0]
    np.testing.assert_allclose(model(_TOKENS), numbers, rtol=1e-6)
    targets = np.linspace(-1, 1, 6).astype(np.float32)
    model.compile("sgd", run_eagerly=True)
    found = model.evaluate(_TOKENS, targets, verbose=0, return_dict=True)
    assert found["squared_error"] == pytest.approx(((numbers - targets) ** 2).mean())
    assert "accuracy" not in found


def test_segments_count_where_the_encoder_knows_them():
    segments = np.arange(10)[None] // 5 + 0 * _TOKENS
    plain = make()
    np.testing.assert_array_equal(plain((_TOKENS, segments)), plain(_TOKENS))
    two = make(num_segments=2)
    assert not np.allclose(two((_TOKENS, segments)), two(_TOKENS))


def test_it_learns_what_the_first_piece_says():
    tokens = texts(60, seed=1)
    labels = (tokens[:, 1] > 11).astype(np.int32)
    model = SequenceClassifier(
        encoder(width=8, embedding_width=8, initializer_range=0.2), 2
    )
    model.compile(keras.optimizers.Adamax(0.02))
    for _ in range(40):
        logs = model.train_on_batch(tokens, labels, return_dict=True)
    assert logs["accuracy"] > 0.9


def test_rates_fall_from_layer_to_layer():
    model = make(positions="both", embedding_width=6)
    optimizer = layerwise_decay(model, lambda by: keras.optimizers.SGD(0.8 * by), 0.5)
    assert optimizer.learning_rates == pytest.approx(
        {"embedding": 0.1, "block_0": 0.2, "block_1": 0.4, "head": 0.8}
    )
    model.compile(optimizer, run_eagerly=True)
    before = [v.numpy() for v in model.trainable_variables]
    with tf.GradientTape() as tape:
        term = model.objective_terms(_TOKENS, _LABELS, None, training=True)["nll"]
        loss = tf.reduce_mean(term.loss)
    gradients = tape.gradient(loss, [v.value for v in model.trainable_variables])
    model.train_on_batch(_TOKENS, _LABELS)
    rates = optimizer.learning_rates
    for variable, old, gradient in zip(
        model.trainable_variables, before, gradients, strict=True
    ):
        rate = rates[optimizer.part_of(variable)]
        expected = old - rate * tf.convert_to_tensor(gradient).numpy()
        np.testing.assert_allclose(variable.numpy(), expected, rtol=1e-5, atol=1e-8)


def test_the_last_normalisation_is_above_all_blocks():
    parts = make(norm="pre", positions="t5").parts
    assert parts["head"][0].name == "final_norm"
    assert "final_norm" not in [layer.name for layer in parts["embedding"]]
    assert len(parts["embedding"]) == 2


def test_linear_decay():
    schedule = LinearDecay(0.8, 10, 3)
    found = [float(schedule(step)) for step in range(12)]
    assert found[:4] == pytest.approx([0.2, 0.4, 0.6, 0.8])
    assert found[4:] == pytest.approx([0.8 * k / 7 for k in (6, 5, 4, 3, 2, 1, 0, 0)])
    restored = LinearDecay.from_config(schedule.get_config())
    assert float(restored(5)) == found[5]
    with pytest.raises(ValueError, match="`steps` must be an integer >= 4, found 3"):
        LinearDecay(0.1, 3, 3)


def test_mistakes():
    model = make()
    with pytest.raises(ValueError, match=r"labels must be in \[0, 3\), found 3"):
        model.objective_terms(_TOKENS, _LABELS + 1, None, training=False)
    with pytest.raises(ValueError, match=r"no labels; expected batches"):
        model.objective_terms(_TOKENS, None, None, training=False)
    with pytest.raises(ValueError, match=r"axis B of `.*` is 6, expected 2"):
        model.objective_terms(_TOKENS, _LABELS[:2], None, training=False)
    with pytest.raises(ValueError, match="`num_classes` must be an integer >= 2"):
        make(1)
    with pytest.raises(ValueError, match="must be an rlm_tf"):
        SequenceClassifier(keras.layers.Dense(2), 2)


# === Numbers ===


@pytest.mark.graph
@pytest.mark.landing
def test_labels_of_any_size_are_learnt(tmp_path):
    rng = np.random.default_rng(0)
    tokens = texts(rows=32)
    counts = np.count_nonzero(tokens > 12, axis=1)
    labels = (100 + 10 * counts + rng.normal(size=32)).astype("float32")
    mean, scale = float(labels.mean()), float(labels.std())

    def fitted(**units):
        model = SequenceClassifier(
            encoder(), None, dropout=0.0, pooling="mean", **units
        )
        model.compile(keras.optimizers.Adamax(0.01))
        for _ in range(40):
            logs = model.train_on_batch(tokens, labels, return_dict=True)
        return model, logs

    model, logs = fitted(label_mean=mean, label_scale=scale)
    found = model.evaluate(tokens, labels, verbose=0, return_dict=True)
    # Better than the mean, which is far from what a head reaches by itself.
    assert found["squared_error"] < 0.8 * scale**2
    said = model(tokens).numpy()
    expected = np.mean((said - labels) ** 2)
    assert found["squared_error"] == pytest.approx(expected, rel=1e-5)
    assert found["loss"] == pytest.approx(expected / scale**2, rel=1e-5)
    _, logs = fitted()
    assert logs["squared_error"] > 10 * scale**2
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(tokens), said)
    with pytest.raises(ValueError, match="`label_scale` must be finite and positive"):
        SequenceClassifier(encoder(), None, label_scale=0.0)


def test_half_precision_widens_losses():
    shared = encoder(dtype="mixed_bfloat16")
    classifier = SequenceClassifier(shared, 3, dropout=0.0)
    masked_model = MaskedLanguageModel(shared)
    tokens, shown, positions = masked(_TOKENS)
    bigram = KneserNey(2).fit(tokens.ravel(), VOCABULARY).with_floor(1e-6)
    x = (tokens, 0 * tokens, shown, positions)
    for contexts in (SampledPrefixes(tokens, 2), InBatchContexts()):
        model = InducedFineTuning(
            classifier, masked_model, restricted=bigram, contexts=contexts
        )
        model.compile("adam", run_eagerly=True)
        terms = model.objective_terms(x, _LABELS, None, training=True)
        for name, term in terms.items():
            assert term.loss.dtype == tf.float32, name
            assert np.isfinite(term.loss).all(), name
    electra = Electra(encoder(dtype="mixed_bfloat16"), encoder(dtype="mixed_bfloat16"))
    number = SequenceClassifier(shared, None, label_mean=100.0)
    assert number(tokens).dtype == tf.float32
    for each, batch in (
        (model, (x, _LABELS)),
        (electra, ((tokens, shown, positions),)),
        (masked_model, ((tokens, shown, positions),)),
        (number, (tokens, np.arange(6, dtype="float32"))),
    ):
        each.compile("adam", run_eagerly=True)
        assert np.isfinite(each.train_on_batch(*batch)).all()
