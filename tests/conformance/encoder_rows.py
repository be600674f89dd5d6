"""Rows of encoders, of their parts and of what trains them."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from rlm_tf import layers, metrics, models, restricted
from tests.conformance.row import TOKENS, VOCABULARY, Row

_SEQUENCE = tf.constant(np.random.default_rng(1).normal(size=(2, 3, 5)), tf.float32)
# The first row has two masked tokens, the second one and padding.
_TOKENS = np.array([[1, 2, 3, 1], [5, 4, 0, 0]], np.int32)
_POSITIONS = np.array([[0, 1, 1, 0], [1, 0, 0, 0]], np.int32)
BATCH = ((_TOKENS, np.where(_POSITIONS, 4, _TOKENS).astype(np.int32), _POSITIONS),)


def encoder(**options) -> layers.TransformerEncoder:
    """A small encoder."""
    return layers.TransformerEncoder(
        VOCABULARY,
        **{
            "num_layers": 1,
            "width": 4,
            "num_heads": 2,
            "feed_forward": 6,
            "embedding_width": 3,
            "num_segments": 2,
            "max_length": 9,
            "dropout": 0.2,
            "positions": "both",
            "residual_scaling": "admin",
            "epsilon": 1e-3,
            "initializer_range": 0.3,
            "seed": 2,
            **options,
        },
    )


def _masked_model() -> models.MaskedLanguageModel:
    return models.MaskedLanguageModel(
        encoder(), max_positions=3, clip_norm=2.0, loss_scale=3.0, l2=0.01, seed=4
    )


def _electra() -> models.Electra:
    return models.Electra(
        encoder(width=2, num_heads=1),
        encoder(seed=3),
        discriminator_weight=5.0,
        embeddings="disentangled",
        temperature=0.8,
        clip_norm=2.0,
        seed=4,
    )


# Of the pieces there is one; each text has several.
_PIECES = np.array([[2, 5, 5, 3], [2, 5, 5, 5]], np.int32)
LABELLED = (
    (_PIECES, _PIECES % 2, _PIECES[:, ::-1].copy(), _POSITIONS),
    np.array([0, 2], np.int32),
    np.array([1, 0.5], np.float32),
)


def prefixes() -> models.SampledPrefixes:
    """Contexts of the texts."""
    return models.SampledPrefixes(_PIECES, k=2)


def _fine_tuning() -> models.InducedFineTuning:
    classifier = models.SequenceClassifier(encoder(), 3, dropout=0.3, seed=4)
    return models.InducedFineTuning(
        classifier,
        models.MaskedLanguageModel(classifier.encoder, seed=5),
        restricted.KneserNey(2).fit(_PIECES.ravel(), VOCABULARY),
        prefixes(),
        mlm_weight=0.5,
        coefficient=0.3,
        hide="causal",
        positions=2,
        clip_norm=1.0,
        seed=6,
    )


def detect(metric: metrics.DetectionF1) -> tf.Tensor:
    """Counts tokens, and returns the score."""
    metric.update_state([1, 0, 1, 0], [0.9, 0.6, 0.1, 0.7], [1.0, 0.5, 1.0, 0.0])
    return metric.result()


ENCODER_ROWS = [
    Row(
        "EncoderEmbedding",
        lambda: layers.EncoderEmbedding(
            VOCABULARY, 4, max_length=9, num_segments=2, dropout=0.2, seed=1
        ),
        lambda layer: layer(TOKENS),
    ),
    Row(
        "DisentangledEmbedding",
        lambda: layers.DisentangledEmbedding(
            VOCABULARY, 4, max_length=9, num_segments=2, dropout=0.2, seed=1
        ),
        lambda layer: layer(TOKENS),
    ),
    Row(
        "PositionBias",
        lambda: layers.PositionBias(
            2,
            num_buckets=8,
            max_distance=6,
            variant="cocolm",
            initializer="he_normal",
            slope=0.3,
        ),
        lambda layer: layer(tf.range(4)),
    ),
    Row("TransformerEncoder", encoder, lambda layer: layer(TOKENS)),
    Row(
        "MaskedTokenHead",
        lambda: layers.MaskedTokenHead(
            VOCABULARY, 5, activation="gelu_tanh", initializer_range=0.4, seed=1
        ),
        lambda layer: layer(_SEQUENCE, tf.ones([VOCABULARY, 5])),
    ),
    Row(
        "DetectionHead",
        lambda: layers.DetectionHead(
            5, activation="gelu_tanh", initializer_range=0.4, seed=1
        ),
        lambda layer: layer(_SEQUENCE),
    ),
    Row("DetectionF1", lambda: metrics.DetectionF1(name="found"), detect),
    Row(
        "MaskedLanguageModel",
        _masked_model,
        lambda model: model(TOKENS),
        batch=BATCH,
    ),
    Row(
        "SequenceClassifier",
        lambda: models.SequenceClassifier(encoder(), 3, dropout=0.3, l2=0.1, seed=4),
        lambda model: model(TOKENS),
        batch=(
            (TOKENS, TOKENS % 2),
            np.array([0, 2], np.int32),
            np.array([1, 0.5], np.float32),
        ),
    ),
    Row("InducedFineTuning", _fine_tuning, lambda model: model(TOKENS), batch=LABELLED),
    Row("Electra", _electra, lambda model: model(TOKENS), batch=BATCH),
]
