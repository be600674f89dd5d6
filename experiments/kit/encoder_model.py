"""Encoders of studies, what trains them, and how they are fitted."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import Any

import keras

from experiments.kit import run_files
from experiments.kit.encoder_config import EncoderConfig
from experiments.kit.encoder_text import EncoderText
from rlm_tf.data import Looks, Masking
from rlm_tf.layers import TransformerEncoder
from rlm_tf.optimizers.spared import spare_biases
from rlm_tf.training import LinearRate, MetricsLog, ResumableBatches, read_metrics_log

_CHECKPOINT_SECONDS = 120.0


def encoder(
    config: EncoderConfig,
    vocabulary_size: int,
    layers: int,
    seed: int,
    **options: Any,
) -> TransformerEncoder:
    """Returns a new encoder of so many layers."""
    given: dict[str, Any] = {
        "num_layers": layers,
        "width": config.width,
        "num_heads": config.heads,
        # Second texts are there in fine-tuning only.
        "num_segments": 2,
        "max_length": max(config.length, 256),
        "positions": config.positions,
        "num_buckets": config.buckets,
        "max_distance": config.distance,
        "position_slope": config.slope,
        "norm": config.norm,
        "residual_scaling": config.residual_scaling,
        "initializer_range": config.initializer_range,
        "dropout": config.dropout,
        "seed": seed,
    }
    return TransformerEncoder(vocabulary_size, **{**given, **options})


def adam(config: EncoderConfig, rate: float) -> keras.optimizers.Optimizer:
    """Returns AdamW, which leaves biases and normalisations as they are."""
    optimizer = keras.optimizers.AdamW(
        rate,
        weight_decay=config.weight_decay,
        beta_2=config.beta_2,
        epsilon=config.epsilon,
    )
    return spare_biases(optimizer)


def masking(config: EncoderConfig, text: EncoderText, seed: int) -> Masking:
    """Returns what masks rows of a text."""
    return Masking(text.vocabulary, ratio=config.mask_ratio, seed=seed)


def masked_batches(
    config: EncoderConfig, text: EncoderText, seed: int
) -> ResumableBatches:
    """Returns what is trained on; an epoch lies between two looks."""
    return ResumableBatches(
        Looks(text.train, config.steps_of_a_look),
        transform=masking(config, text, seed),
    )


def fit_to_the_end(
    config: EncoderConfig,
    model: keras.Model,
    data: ResumableBatches,
    folder: pathlib.Path,
    callbacks: Sequence[keras.callbacks.Callback],
    **options: Any,
) -> list[dict[str, Any]]:
    """Trains a compiled model all its steps; returns what was logged at each look.

    Args:
        config: The settings.
        model: Its rates are the highest.
        data: See `masked_batches`.
        folder: Of checkpoints and logs.
        callbacks: In front of the log.
        **options: Of `fit`.
    """
    log = MetricsLog(folder / "metrics.jsonl", seconds=True)
    kept = [
        *callbacks,
        log,
        LinearRate(config.steps, int(config.warm_up * config.steps)),
    ]
    run_files.fit_resumably(
        model, data, folder, config.looks, kept, _CHECKPOINT_SECONDS, **options
    )
    return read_metrics_log(log.path)
