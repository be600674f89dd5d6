"""Rows of the AWD-LSTM, of the mutual-information regulariser and of their parts."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from rlm_tf import layers, metrics, models
from rlm_tf.data.batches.pair_batch import PairBatch
from tests.conformance.row import TOKENS, VOCABULARY, Row

_X, _Y = np.random.default_rng(4).normal(size=(2, 3, 5)).astype(np.float32)
_JOINT, _MARGINAL = _X[:, 0], _Y[:, :2]
_FIRST = np.array([[[1, 2, 0]], [[4, 0, -1]]], np.int32)
_SECOND = np.array([[[3, 0, -1]], [[5, 5, 0]]], np.int32)
# Two pairs, one beside each row; the next sentence of the second is its proposal.
PAIRS = PairBatch(
    _FIRST,
    _SECOND,
    _FIRST[::-1, :, np.newaxis],
    np.array([[[2, 4, 0]], [[5, 5, 0]]], np.int32),
    np.array([[-1.5], [-1.1]], np.float32),
    np.array([[2], [0]], np.int32),
    np.array([[1.0], [0.5]], np.float32),
)


def awd() -> models.AWDLanguageModel:
    """A small AWD-LSTM with a mixture."""
    return models.AWDLanguageModel(
        VOCABULARY,
        embedding_width=3,
        units=(5, 4),
        mixture_components=2,
        weight_drop=0.2,
        word_dropout=0.3,
        base_window=7,
        jit_loop=False,
        seed=3,
        clip_norm=2.0,
        l2=0.01,
    )


def bmi() -> models.BootstrappedMutualInformation:
    """Both phases around a small model, in the second."""
    model = models.RegularizedLanguageModel(
        VOCABULARY,
        layers.LSTMCell(4, state_dropout=0.2),
        1,
        layer_dropout=0.2,
        jit_loop=False,
        seed=3,
        loss_scale=3.0,
    )
    found = models.BootstrappedMutualInformation(
        model,
        discriminator=discriminator(),
        weight=0.5,
        raml_weight=0.3,
        pooling="mean",
        phase_two="raml",
        temperature=2.0,
        scale="sum",
        clip_norm=1.0,
    )
    found.set_phase(1)
    return found


def discriminator() -> layers.PairDiscriminator:
    """Two directions, with dropout."""
    return layers.PairDiscriminator(
        4,
        directions=2,
        order="authors",
        feature_dropout=0.2,
        hidden_dropout=0.1,
        seed=5,
    )


def score(layer: layers.PairDiscriminator) -> tf.Tensor:
    """Scores of three pairs."""
    return layer((tf.constant(_X), tf.constant(_Y)))


def bound(metric: metrics.MineBound) -> tf.Tensor:
    """The bound of three pairs, one of which does not count."""
    metric.reset_state()
    metric.update_state(_JOINT, _MARGINAL, tf.constant([1.0, 0.0, 2.0]))
    return metric.result()


BMI_ROWS = [
    Row("AWDLanguageModel", awd, lambda model: model(TOKENS)),
    Row(
        "BootstrappedMutualInformation",
        bmi,
        lambda model: model(TOKENS),
        batch=(
            (TOKENS, np.ones(2, np.int32), PAIRS),
            np.roll(TOKENS, -1, axis=1),
            np.array([[1, 1, 1, 1], [1, 0.5, 0, 0]], np.float32),
        ),
    ),
    Row("PairDiscriminator", discriminator, score),
    Row("MineBound", lambda: metrics.MineBound(name="m"), bound),
]
