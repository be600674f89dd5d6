"""Classifiers of documents: the term by hand, heads, thresholds, fits, mistakes."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from rlm_tf import distribution
from rlm_tf.data import DocumentBatches
from rlm_tf.labelling import WordList
from rlm_tf.layers import TfidfBag, WordDeletion
from rlm_tf.models import TextClassifier, TextReader, word_classifier
from rlm_tf.training import ResumableBatches

_TOKENS = np.array([[2, 3, 0], [4, 2, 2], [3, 0, 0]], np.int32)


def _linear(classes=3, **options):
    bag = TfidfBag(6, classes, seed=1)
    bag.adapt(_TOKENS)
    bag.kernel.assign(np.random.default_rng(0).normal(size=(6, classes)))
    return TextClassifier(bag, classes, head=False, **options)


def test_the_term_by_hand():
    model = _linear(label_smoothing=0.2)
    model.compile("sgd", run_eagerly=True)
    labels, weights = np.array([2, 0, 1]), np.array([1.0, 2.0, 0.0])
    ids = np.arange(3)
    logits = model((_TOKENS, ids)).numpy()
    np.testing.assert_array_equal(logits, model(_TOKENS))
    log_probs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    own = -log_probs[np.arange(3), labels]
    logs = model.evaluate((_TOKENS, ids), labels, sample_weight=weights, verbose=0,
                          return_dict=True)  # fmt: skip
    assert logs["nll"] == pytest.approx(np.average(own, weights=weights), rel=1e-5)
    right = logits.argmax(axis=1) == labels
    assert logs["accuracy"] == pytest.approx(np.average(right, weights=weights))
    smooth = 0.8 * own - 0.2 * log_probs.mean(axis=1)
    logs = model.train_on_batch((_TOKENS, ids), labels, weights, return_dict=True)
    assert logs["nll"] == pytest.approx(np.average(smooth, weights=weights), rel=1e-5)


def test_any_layer_is_an_encoder():
    words = keras.Sequential(
        [keras.layers.Embedding(6, 4), keras.layers.GlobalAveragePooling1D()]
    )
    model = TextClassifier(words, 2, dropout=0.5, seed=1)
    assert model(_TOKENS).shape == (3, 2)
    assert {"logits/kernel", "logits/bias"} <= {
        "/".join(w.path.split("/")[-2:]) for w in model.trainable_variables
    }


def test_below_the_threshold_nothing_is_said():
    model = _linear(threshold=0.6)
    probs = [[0.7, 0.2, 0.1], [0.4, 0.5, 0.1], [0.2, 0.2, 0.6]]
    assert model.labels_of(probs).tolist() == [0, -1, 2]
    assert _linear().labels_of(probs).tolist() == [0, 1, 2]
    assert model.labels_of(np.zeros([0, 3])).shape == (0,)


def test_it_learns_though_words_are_deleted():
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, 200)
    # Words 2 to 5 are of one class, 6 to 9 of the other, the rest of both.
    own = rng.integers(2, 6, [200, 4]) + 4 * labels[:, np.newaxis]
    tokens = np.concatenate([own, rng.integers(10, 20, [200, 6])], axis=1)
    bag = TfidfBag(20, 2)
    bag.adapt(tokens)
    model = TextClassifier(bag, 2, head=False)
    model.compile(keras.optimizers.Adam(0.05))
    data = ResumableBatches(
        DocumentBatches(tokens, labels, 50), transform=WordDeletion(0.5, seed=1)
    )
    logs = model.fit(
        data.dataset,
        epochs=20,
        verbose=0,
        shuffle=False,
        callbacks=[data.follow_epochs()],
    ).history
    assert logs["nll"][-1] < 0.5 * logs["nll"][0]
    found = model.evaluate(tokens, labels, verbose=0, return_dict=True)
    assert found["accuracy"] > 0.98


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["linear", "convolutional"])
def test_two_replicas_equal_one_though_words_are_deleted(kind):
    rng = np.random.default_rng(2)
    tokens, labels = rng.integers(2, 20, [24, 6]), rng.integers(0, 2, 24)
    reader = TextReader(WordList([f"w{i}" for i in range(18)]), 6)
    weights = []
    # Also where both passes are one epoch.
    for name, passes in (("default", 1), ("mirrored", 1), ("mirrored", 2)):
        with distribution.strategy(name).scope():
            model = word_classifier(
                kind, reader, ("a", "b"), tokens=tokens, dropout=0.3, l2=0.01, seed=3
            )
            model.compile(keras.optimizers.SGD(0.5))
        data = ResumableBatches(
            DocumentBatches(tokens, labels, 8, seed=1),
            transform=WordDeletion(0.5, seed=1),
            passes=passes,
        )
        model.fit(
            data.dataset,
            epochs=2 // passes,
            shuffle=False,
            verbose=0,
            callbacks=[data.follow_epochs()],
        )
        weights.append(model.get_weights())
    for one, *others in zip(*weights, strict=True):
        for other in others:
            np.testing.assert_allclose(other, one, atol=1e-6)


def test_mistakes():
    with pytest.raises(ValueError, match="must be a Keras layer from token ids"):
        TextClassifier(lambda x: x, 2)
    with pytest.raises(ValueError, match="num_classes"):
        TextClassifier(TfidfBag(6, 2), 1)
    with pytest.raises(ValueError, match="threshold"):
        TextClassifier(TfidfBag(6, 2), 2, threshold=1.5)
    model = TextClassifier(TfidfBag(6, 3), 2, head=False)
    with pytest.raises(ValueError, match="vectors must have 2 numbers, found 3"):
        model(_TOKENS)
    model = _linear()
    model.compile("sgd", run_eagerly=True)
    with pytest.raises(ValueError, match=r"no labels; expected batches \(\(tokens"):
        model.fit(tf.data.Dataset.from_tensors((_TOKENS,)), verbose=0)
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match="labels"):
        model.train_on_batch(_TOKENS, np.array([0, 1, 3]))
