"""The rows of the conformance table that belong to classifiers of documents."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from rlm_tf import labelling, layers, models
from tests.conformance.row import VOCABULARY, Row

_TOKENS = np.array([[2, 3, 2, 0], [4, 2, 5, 5]], np.int32)
_LABELS, _WEIGHTS = np.array([2, 0], np.int32), np.array([1, 0.5], np.float32)
DOCUMENTS = ((_TOKENS, np.arange(2, dtype=np.int32)), _LABELS, _WEIGHTS)


def bag(units: int) -> layers.TfidfBag:
    """A bag that knows how rare words are."""
    found = layers.TfidfBag(VOCABULARY, units, sublinear=False, seed=3)
    found.adapt(_TOKENS)
    return found


def reader() -> models.TextReader:
    """Of four words, rows of three."""
    words = labelling.WordList(["the", "cat", "sat", "mat"])
    return models.TextReader(words, 3)


def _classifier() -> models.TextClassifier:
    return models.TextClassifier(
        bag(4),
        3,
        dropout=0.3,
        label_smoothing=0.1,
        threshold=0.4,
        reader=reader(),
        class_names=("a", "b", "c"),
        clip_norm=1.0,
        l2=0.1,
        seed=4,
    )


TEXT_ROWS = [
    Row(
        "TextReader",
        reader,
        lambda own: tf.constant(own.rows(["The cat sat. The mat", "a"]).tokens),
    ),
    Row(
        "AveragedWords",
        lambda: layers.AveragedWords(VOCABULARY, 3, buckets=5, seed=2),
        lambda layer: layer(_TOKENS),
    ),
    Row(
        "ConvolutionalText",
        lambda: layers.ConvolutionalText(
            VOCABULARY, 3, 2, sizes=(1, 2), dropout=0.3, seed=2
        ),
        lambda layer: layer(_TOKENS),
    ),
    Row(
        "RecurrentText",
        lambda: layers.RecurrentText(
            VOCABULARY, 3, layers.LSTMCell(2, seed=1), dropout=0.3, seed=2
        ),
        lambda layer: layer(_TOKENS),
    ),
    Row(
        "PooledEncoder",
        lambda: layers.PooledEncoder(
            layers.TransformerEncoder(
                VOCABULARY, num_layers=1, width=4, num_heads=2, seed=2
            ),
            pooling="cls",
        ),
        lambda layer: layer(_TOKENS),
    ),
    Row("TfidfBag", lambda: bag(3), lambda layer: layer(_TOKENS)),
    Row(
        "TextClassifier",
        _classifier,
        lambda model: model(_TOKENS),
        example=_TOKENS,
        batch=DOCUMENTS,
    ),
]
