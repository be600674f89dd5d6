"""Rows of the classes of latent-variable models."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from rlm_tf import layers, models
from tests.conformance.row import VOCABULARY, Row

_FEATURES = tf.constant(np.random.default_rng(4).normal(size=(2, 5)), tf.float32)
_LATENTS = tf.constant(np.random.default_rng(5).normal(size=(3, 2, 4)), tf.float32)
_X = np.array([3, 1], np.int32)
_SENTENCES = np.array([[3, 1, 0, -1], [2, 2, 1, 0]], np.int32)


def _encoder() -> layers.SentenceEncoder:
    cell = layers.GRUCell(5)
    return layers.SentenceEncoder(VOCABULARY, cell, embedding_width=3, seed=2)


def _decoder(latent_size: int = 4) -> layers.SentenceDecoder:
    return layers.SentenceDecoder(
        VOCABULARY,
        latent_size,
        layers.LSTMCell(4, state_dropout=0.2, seed=3),
        embedding_width=3,
        end_id=1,
        tied=True,
        input_dropout=0.1,
        output_dropout=0.2,
        shared_dropout=False,
        seed=2,
    )


def _vae() -> models.MonteCarloVAE:
    return models.MonteCarloVAE(
        _encoder(),
        layers.CategoricalLatents(2, 3, trainable_prior=True, seed=2),
        _decoder(6),
        objective="renyi",
        estimator="vimco",
        num_samples=(3, 2),
        lambda_=0.2,
        alpha=1.5,
        grouping="terms",
        baseline="leave_one_out",
        seed=3,
        clip_norm=2.0,
        loss_scale=3.0,
    )


def _quantized() -> models.VectorQuantizedVAE:
    return models.VectorQuantizedVAE(
        _encoder(),
        layers.VectorQuantizer(2, 3, 2, decay=0.5, seed=2),
        _decoder(),
        commitment=0.7,
        seed=3,
        clip_norm=2.0,
    )


def _first(parameters: dict[str, tf.Tensor]) -> tf.Tensor:
    return next(iter(parameters.values()))


def _of_sentences(name: str, make: Any, read: Any) -> Row:
    return Row(
        name,
        make,
        lambda model: read(model(_SENTENCES)),
        _SENTENCES,
        (_SENTENCES, np.zeros(2, np.int32), np.array([1, 0.5], np.float32)),
        read,
    )


LATENT_ROWS = [
    Row(
        "NormalLatents",
        lambda: layers.NormalLatents(3, trainable_prior=True, seed=2),
        lambda layer: layer(_FEATURES)["log_variance"],
    ),
    Row(
        "CategoricalLatents",
        lambda: layers.CategoricalLatents(2, 3, trainable_prior=True, seed=2),
        lambda layer: layer(_FEATURES)["logits"],
    ),
    Row(
        "SymbolEncoder",
        lambda: layers.SymbolEncoder(VOCABULARY, 4, seed=2),
        lambda layer: layer(_X),
    ),
    Row(
        "SymbolDecoder",
        lambda: layers.SymbolDecoder(VOCABULARY, 4, 3, num_layers=1, embed=True),
        lambda layer: layer(_LATENTS, _X),
    ),
    Row("SentenceEncoder", _encoder, lambda layer: layer(_SENTENCES)),
    Row("SentenceDecoder", _decoder, lambda layer: layer(_LATENTS, _SENTENCES)),
    Row(
        "VectorQuantizer",
        lambda: layers.VectorQuantizer(2, 3, 2, decay=0.5, seed=2),
        lambda layer: layer(tf.reshape(_FEATURES[:, :4], [2, 2, 2])).vectors,
    ),
    _of_sentences("MonteCarloVAE", _vae, _first),
    _of_sentences("VectorQuantizedVAE", _quantized, lambda found: found.vectors),
]
